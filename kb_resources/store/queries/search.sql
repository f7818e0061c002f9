-- Reading side of the retrieval tables, run as kb_app under row level security.

-- name: search_scopes
-- The scopes of a search that this connection may see, with what their lexical rows were made by
-- and the model they are searched by.
select * from kb.search_scopes(%(scopes)s::text[])

-- name: search
-- One ranked page; see the comments on the function in migrations 0017 and 0028.
select * from kb.search(%(scope_ids)s::int[], %(lexemes)s::int[], %(weights)s::real[],
  %(vector)s::halfvec, %(model_key)s::int, %(audiences)s::text[], %(as_of)s, %(historical)s,
  %(k)s::int, %(candidates)s::int, %(filtered)s, %(languages)s::text[], %(media_types)s::text[],
  %(documents)s::text[], %(heading_prefix)s::text[], %(metadata)s::jsonb,
  %(vector_weight)s::real, %(full_share)s::real, %(known_at)s, %(scopes)s::text[],
  %(words)s::int[], %(word_lexemes)s::int[])

-- name: passage_by_id
-- One passage for a reader: of the version named, else the one that holds now, else the newest.
select s.name as scope, d.document_id, v.version, v.digest, p.passage_id, v.title, p.heading_path,
  p.page, p.locator, p.byte_start, p.byte_end, p.char_start, p.char_end, p.language,
  held.valid_from, held.valid_until, d.origin as source, v.media_type, p.context, p.text
from kb.passage p
join kb.version v using (version_key)
join kb.document d on d.document_key = v.document_key
join kb.scope s on s.scope_id = p.scope_id
left join lateral (
  select lower(x.valid) as valid_from, upper(x.valid) as valid_until from kb.validity x
  where x.version_key = v.version_key and upper_inf(x.known)
  order by lower(x.valid) desc limit 1) held on true
where s.name = %(scope)s and p.passage_id = %(passage_id)s
  and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s::text[])
  and (%(version)s::int is null or v.version = %(version)s)
order by (held.valid_from is not null and held.valid_until is null) desc, v.version desc limit 1
