-- Rows of several documents in one statement each; the line works on documents in groups.

-- name: add_versions
-- The versions of these bytes, made where they are new, as the newest of their documents.
with given as (
  select * from unnest(%(document_keys)s::bigint[], %(scope_ids)s::int[], %(digests)s::text[],
    %(media_types)s::text[], %(sizes)s::bigint[], %(names)s::text[])
    g (document_key, scope_id, digest, media_type, size_bytes, name)
), made as (
  insert into kb.version (document_key, scope_id, version, digest, media_type, size_bytes, name)
  select g.document_key, g.scope_id,
    coalesce((select max(v.version) from kb.version v where v.document_key = g.document_key), 0) + 1,
    g.digest, g.media_type, g.size_bytes, g.name
  from given g
  on conflict (document_key, digest) do nothing
  returning document_key, version_key, version
), found as (
  select document_key, version_key, version, true as new from made
  union all
  select v.document_key, v.version_key, v.version, false
  from kb.version v join given g using (document_key, digest)
), latest as (
  update kb.document d set latest_version = f.version, state = 'pending', reason = '',
    duplicate_of = null, settled_fingerprint = null, updated_at = now()
  from found f where d.document_key = f.document_key
)
select document_key, version_key, version, new from found

-- name: append_events
insert into kb.lifecycle (scope_id, document_key, version, event, actor, details)
select scope_id, document_key, version, event, %(actor)s, details
from unnest(%(scope_ids)s::int[], %(document_keys)s::bigint[], %(versions)s::int[],
  %(events)s::text[], %(details)s::jsonb[])
  with ordinality g (scope_id, document_key, version, event, details, nth)
order by nth

-- name: save_stage_results
-- A new output, or an end, forgets what later stages made of the version.
with given as (
  select * from unnest(%(version_keys)s::bigint[], %(scope_ids)s::int[], %(fingerprints)s::text[],
    %(outputs)s::text[], %(states)s::text[], %(reasons)s::text[], %(counts)s::jsonb[],
    %(details)s::jsonb[], %(durations)s::float8[])
    g (version_key, scope_id, fingerprint, output, state, reason, counts, details, duration_s)
), dropped as (
  delete from kb.stage_result r
  using given g left join kb.stage_result k
    on k.version_key = g.version_key and k.stage = %(stage)s
  where r.version_key = g.version_key and r.stage = any (%(later)s)
    and (k.output is distinct from g.output or g.state is not null)
)
insert into kb.stage_result as r (version_key, stage, scope_id, fingerprint, output, state, reason,
  counts, details, duration_s)
select version_key, %(stage)s, scope_id, fingerprint, output, state, reason, counts, details,
  duration_s
from given
on conflict (version_key, stage) do update set fingerprint = excluded.fingerprint,
  output = excluded.output, state = excluded.state, reason = excluded.reason,
  counts = excluded.counts, details = excluded.details, duration_s = excluded.duration_s,
  finished_at = now()

-- name: reopen_documents
update kb.document set state = 'pending', reason = '', duplicate_of = null,
  settled_fingerprint = null, updated_at = now()
where document_key = any (%(document_keys)s) and state <> 'pending'

-- name: settle_documents
-- Published, and every stage has had its say: the final state of documents and versions.
with given as (
  select * from unnest(%(document_keys)s::bigint[], %(version_keys)s::bigint[],
    %(settled)s::text[]) g (document_key, version_key, settled)
), versions as (
  update kb.version v set state = 'indexed', reason = ''
  from given g where v.version_key = g.version_key
)
update kb.document d set state = 'indexed', reason = '', duplicate_of = null, attempts = 0,
  settled_fingerprint = g.settled, updated_at = now()
from given g where d.document_key = g.document_key

-- name: set_languages
update kb.version v set language = g.language, language_confidence = g.confidence
from unnest(%(version_keys)s::bigint[], %(languages)s::text[], %(confidences)s::float8[])
  g (version_key, language, confidence)
where v.version_key = g.version_key

-- name: body_bytes
-- Their length as it is stored uncompressed; no body is read for it.
select coalesce(sum(octet_length(body)), 0) from kb.parsed where version_key = any (%(version_keys)s)

-- name: load_bodies
select version_key, body from kb.parsed where version_key = any (%(version_keys)s)

-- name: load_parsed
select p.version_key, p.body, p.blocks, p.pages, p.coverage, p.metadata, p.parser, v.title,
  v.media_type
from kb.parsed p join kb.version v using (version_key)
where p.version_key = any (%(version_keys)s)

-- name: load_extraction
select e.version_key, coalesce(e.raw_text, p.body), e.hidden
from kb.extraction e left join kb.parsed p using (version_key)
where e.version_key = any (%(version_keys)s)

-- name: released_rules
-- Rules that a person has released for exactly these bytes.
select r.version_key, array_agg(distinct rule) as rules
from kb.review r, unnest(r.rules) rule
where r.version_key = any (%(version_keys)s) and r.decision = 'release'
group by r.version_key

-- name: replace_staged_chunks
delete from kb.staged_chunk where version_key = any (%(version_keys)s)

-- name: load_staged_chunks
select version_key, ordinal, passage_id, context, heading_path, page, locator, byte_start, byte_end,
  char_start, char_end, content_hash, embed_hash, token_count
from kb.staged_chunk where version_key = any (%(version_keys)s) order by version_key, ordinal

-- name: load_published_chunks
select version_key, ordinal, passage_id, context, heading_path, page, locator, byte_start, byte_end,
  char_start, char_end, content_hash, embed_hash, token_count
from kb.passage where version_key = any (%(version_keys)s) order by version_key, ordinal

-- name: restage_published
-- Chunks of versions already published, for work after the chunk stage (another model).
insert into kb.staged_chunk (version_key, ordinal, scope_id, passage_id, context, heading_path,
  page, locator, byte_start, byte_end, char_start, char_end, content_hash, embed_hash, token_count)
select version_key, ordinal, scope_id, passage_id, context, heading_path, page, locator,
  byte_start, byte_end, char_start, char_end, content_hash, embed_hash, token_count
from kb.passage p where version_key = any (%(version_keys)s)
  and not exists (select 1 from kb.staged_chunk c where c.version_key = p.version_key)

-- name: stage_known
-- Copies to the versions' staged vectors those that their scope has for the same embedded text. One
-- is taken of each: a text that stands in every document is looked up once, not with all its copies.
insert into kb.staged_vector (version_key, model_key, embed_hash, carried, vec)
select c.version_key, %(model_key)s, c.embed_hash, true, e.vec
from (select distinct version_key, scope_id, embed_hash from kb.staged_chunk
  where version_key = any (%(version_keys)s)) c
cross join lateral (select x.vec from kb.passage p
  join kb.embedding x on x.passage_key = p.passage_key and x.model_key = %(model_key)s
  where p.scope_id = c.scope_id and p.embed_hash = c.embed_hash limit 1) e
on conflict do nothing

-- name: staged_hashes
select embed_hash from kb.staged_vector
where version_key = %(version_key)s and model_key = %(model_key)s

-- name: missing_hashes
-- Embedded texts of the versions' staged chunks that have no staged vector, in order of the text; one
-- that occurs twice comes twice.
select c.version_key, c.embed_hash from kb.staged_chunk c
where c.version_key = any (%(version_keys)s) and not exists (
  select 1 from kb.staged_vector s where s.version_key = c.version_key
    and s.model_key = %(model_key)s and s.embed_hash = c.embed_hash offset 0)
order by c.version_key, c.ordinal

-- name: drop_staged_vectors
delete from kb.staged_vector s
using unnest(%(version_keys)s::bigint[], %(hashes)s::text[]) g (version_key, embed_hash)
where s.version_key = g.version_key and s.model_key = %(model_key)s and s.embed_hash = g.embed_hash

-- name: ended_by
-- Versions of the documents whose validity ended when the named one's began and have no event yet.
select distinct g.version_key, v.version
from unnest(%(document_keys)s::bigint[], %(version_keys)s::bigint[]) g (document_key, version_key)
join kb.validity x on x.document_key = g.document_key
join kb.version v on v.version_key = x.version_key
where upper_inf(x.known) and not upper_inf(x.valid) and x.version_key <> g.version_key
  and upper(x.valid) = (select max(lower(valid)) from kb.validity
    where version_key = g.version_key and upper_inf(known) and upper_inf(valid))
order by g.version_key, v.version
