-- What people decide about documents, and the log that proves it.

-- name: remove_document
select kb.remove_document(%(document_key)s::bigint, %(at)s, %(reason)s)

-- name: restore_document
select kb.restore_document(%(document_key)s::bigint, %(at)s)

-- name: decide_audiences
select kb.decide_audiences(%(document_key)s::bigint, %(audiences)s::text[], %(actor)s)

-- name: follow_source
-- The source says again who may read the document, from its next registration on.
update kb.document set audiences_set_by = null, updated_at = now()
where document_key = %(document_key)s and audiences_set_by is not null

-- name: body_of_version
-- A version's body for a reader: only what the gate has cleared shows (row level security).
select v.version, v.digest, v.title, v.created_at, p.body
from kb.version v
join kb.document d using (document_key)
join kb.scope s on s.scope_id = d.scope_id
left join kb.parsed p using (version_key)
where s.name = %(scope)s and d.document_id = %(document_id)s and v.version = %(version)s
  and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s::text[])

-- name: verify_lifecycle
select s.name as scope, d.document_id, v.lifecycle_id, v.problem
from kb.verify_lifecycle(%(scope_id)s::int, %(document_key)s::bigint) v
left join kb.document d on d.document_key = v.document_key
left join kb.scope s on s.scope_id = d.scope_id

-- name: lifecycle_size
select count(*) as entries, count(distinct document_key) as documents from kb.lifecycle
where (%(scope_id)s::int is null or scope_id = %(scope_id)s)
  and (%(document_key)s::bigint is null or document_key = %(document_key)s)

-- name: document_intervals
-- Intervals of a document's versions, in valid time, as they were known at an instant.
select v.version, lower(x.valid) as valid_from, upper(x.valid) as valid_until,
  lower(x.known) as known_from, upper(x.known) as known_until
from kb.validity x
join kb.version v using (version_key)
join kb.document d on d.document_key = x.document_key
join kb.scope s on s.scope_id = d.scope_id
where s.name = %(scope)s and d.document_id = %(document_id)s
  and (%(known_at)s::timestamptz is null or x.known @> %(known_at)s::timestamptz)
  and (%(valid_at)s::timestamptz is null or x.valid @> %(valid_at)s::timestamptz)
  and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s::text[])
order by lower(x.known), lower(x.valid)

-- name: documents_of_source
-- Documents of a scope whose source, or the path or address it is named by, is :source or lies below.
select d.document_id from kb.document d join kb.scope s using (scope_id)
where s.name = %(scope)s and d.state not in ('removed', 'erased')
  and (d.source_uri = %(source)s or starts_with(d.source_uri, %(source)s || '/')
    or d.origin = %(source)s or starts_with(d.origin, %(source)s || '/'))
order by d.document_id
