-- Reading one document: passages in their place, headings, the body, how a passage came to be.
-- Run as kb_app; the same conditions as a search: scope by row level security, audiences here.

-- name: passage_context
-- A passage (of the version named, else the one that holds now, else the newest) between its
-- neighbours in the same version; `step` is 0 for the passage itself.
with asked as (
  select p.version_key, p.ordinal
  from kb.passage p
  join kb.version v using (version_key)
  join kb.document d on d.document_key = v.document_key
  join kb.scope s on s.scope_id = p.scope_id
  where s.name = %(scope)s and p.passage_id = %(passage_id)s
    and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s::text[])
    and (%(version)s::int is null or v.version = %(version)s)
  order by exists (select from kb.validity x where x.version_key = v.version_key
    and upper_inf(x.known) and upper_inf(x.valid)) desc, v.version desc
  limit 1
)
select p.ordinal - asked.ordinal as step, s.name as scope, d.document_id, v.version, v.digest,
  p.passage_id, v.title, p.heading_path, p.page, p.locator, p.byte_start, p.byte_end,
  p.char_start, p.char_end, p.language, held.valid_from, held.valid_until, d.origin as source,
  v.media_type, p.context, p.text
from asked
join kb.passage p on p.version_key = asked.version_key
  and p.ordinal between asked.ordinal - %(before)s and asked.ordinal + %(after)s
join kb.version v on v.version_key = p.version_key
join kb.document d on d.document_key = v.document_key
join kb.scope s on s.scope_id = p.scope_id
left join lateral (
  select lower(x.valid) as valid_from, upper(x.valid) as valid_until from kb.validity x
  where x.version_key = v.version_key and upper_inf(x.known)
  order by lower(x.valid) desc limit 1) held on true
order by p.ordinal

-- name: readable_version
-- A version as its readers may see it: the one named, else the one that holds now, else the
-- newest. Row level security of kb.parsed shows only what the gate has cleared.
select v.version_key, s.name as scope, d.document_id, v.version, v.digest, v.title, v.language,
  v.media_type, d.origin as source, b.body, b.blocks, b.pages
from kb.document d
join kb.scope s using (scope_id)
join kb.version v on v.document_key = d.document_key
join kb.parsed b using (version_key)
where s.name = %(scope)s and d.document_id = %(document_id)s
  and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s::text[])
  and (%(version)s::int is null or v.version = %(version)s)
order by exists (select from kb.validity x where x.version_key = v.version_key
  and upper_inf(x.known) and upper_inf(x.valid)) desc, v.version desc
limit 1

-- name: version_passages
-- Where the passages of a version stand, in reading order.
select passage_id, heading_path, page, byte_start, byte_end
from kb.passage where version_key = %(version_key)s order by ordinal

-- name: explain_passage
-- What is stored about one passage, from the bytes it came from to its lexical row.
select p.passage_key, s.name as scope, d.document_id, d.origin as source, d.audiences, v.version,
  v.digest, v.converted_by, v.media_type, v.size_bytes, v.name, v.title,
  v.created_at as stored_at,
  p.passage_id, p.heading_path, p.page, p.locator, p.byte_start, p.byte_end, p.char_start,
  p.char_end, p.content_hash, p.embed_hash, p.token_count, p.language, p.context, p.text,
  x.bm::text as weights, x.valid_from, x.valid_until, l.analyzer, l.counted,
  encode(sha256(convert_to(b.body, 'UTF8')), 'hex') as body_digest,
  convert_to(p.text, 'UTF8') is not distinct from
    substring(convert_to(b.body, 'UTF8') from p.byte_start + 1 for p.byte_end - p.byte_start)
    as is_slice,
  kb.explain_version(v.version_key) as ledger
from kb.passage p
join kb.version v using (version_key)
join kb.document d on d.document_key = v.document_key
join kb.scope s on s.scope_id = p.scope_id
join kb.lexicon l on l.scope_id = p.scope_id
join kb.lex x using (passage_key)
left join kb.parsed b on b.version_key = v.version_key
where s.name = %(scope)s and p.passage_id = %(passage_id)s
  and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s::text[])
  and (%(version)s::int is null or v.version = %(version)s)
order by x.valid_until is null desc, v.version desc limit 1

-- name: explain_vectors
-- The vectors of a passage by model; the vector itself stays where it is.
select m.model_id, m.dim as dimensions, m.state, l2_norm(e.vec) as norm
from kb.embedding e join kb.model m using (model_key)
where e.passage_key = %(passage_key)s order by m.model_key

-- name: lexeme_frequencies
-- In how many passages of the scope each lexeme stands, as last counted.
select t.lexeme, t.df
from kb.term t join kb.scope s using (scope_id)
where s.name = %(scope)s and t.lexeme = any (%(lexemes)s)
