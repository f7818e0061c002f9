-- Erasing documents and forgetting people; see migration 0007.

-- name: make_salt
insert into kb.installation (salt) values (%(salt)s) on conflict do nothing

-- name: installation_salt
select salt from kb.installation

-- name: erase_document
select kb.erase_document(%(document_key)s::bigint, %(alias)s, %(reason)s)

-- name: version_bytes
-- Bytes of a document's versions, and whether another document of the scope needs them too.
select distinct v.digest, v.size_bytes, v.name, exists (
  select 1 from kb.version o where o.scope_id = v.scope_id and o.digest = v.digest
    and o.document_key <> v.document_key
    and coalesce(o.state, '') not in ('blocked', 'language_refused', 'erased')) as shared
from kb.version v where v.document_key = %(document_key)s

-- name: jobs_of_document
select job_id from kb.job where scope = %(scope)s and document_id = %(document_id)s order by job_no

-- name: bytes_used
select exists (
  select 1 from kb.version where scope_id = %(scope_id)s and digest = %(digest)s
    and coalesce(state, '') not in ('blocked', 'language_refused', 'erased')
  union all
  select 1 from kb.document where scope_id = %(scope_id)s and state = 'pending'
    and source_uri like 'stored:%%' and split_part(source_uri, '/', 2) = %(digest)s) as used

-- name: begin_erasure
insert into kb.erasure (erasure_id, scope_id, id_digest, actor, reason, work, counts)
values (%(erasure_id)s, %(scope_id)s, %(id_digest)s, %(actor)s, %(reason)s, %(work)s, %(counts)s)

-- name: erasure_progress
update kb.erasure set counts = counts || %(counts)s where erasure_id = %(erasure_id)s

-- name: finish_erasure
update kb.erasure set counts = counts || %(counts)s, remains = %(remains)s, work = null,
  finished_at = clock_timestamp()
where erasure_id = %(erasure_id)s and finished_at is null

-- name: erasures
-- Certificates of a scope, newest first, or one.
select e.erasure_id, s.name as scope, e.actor, e.reason, e.counts, e.remains, e.started_at,
  e.finished_at, e.readmitted_at, e.replays
from kb.erasure e join kb.scope s using (scope_id)
where (%(scope)s::text is null or s.name = %(scope)s)
  and (%(erasure_id)s::text is null or e.erasure_id = %(erasure_id)s)
order by e.started_at desc limit %(limit)s

-- name: unfinished_erasures
select e.erasure_id, s.name as scope, e.scope_id, e.id_digest, e.work, e.started_at
from kb.erasure e join kb.scope s using (scope_id)
where e.finished_at is null order by e.started_at

-- name: scope_has_erasures
select exists (select 1 from kb.erasure where scope_id = %(scope_id)s and readmitted_at is null)

-- name: erased_before
select erasure_id, started_at from kb.erasure
where scope_id = %(scope_id)s and id_digest = %(id_digest)s and readmitted_at is null
order by started_at desc limit 1

-- name: keep_out
-- A source that comes back by itself stays out; see `erasure.keep_out`.
select kb.keep_out(%(scope_id)s::int, %(document_id)s, %(reason)s)

-- name: readmit
update kb.erasure set readmitted_at = clock_timestamp()
where scope_id = %(scope_id)s and id_digest = %(id_digest)s and readmitted_at is null

-- name: adopt_erasure
-- An erasure that a restored backup does not know of yet.
insert into kb.erasure (erasure_id, scope_id, id_digest, actor, reason, started_at, finished_at,
  counts)
select %(erasure_id)s, scope_id, %(id_digest)s, %(actor)s, %(reason)s, %(started_at)s,
  %(started_at)s, '{}'
from kb.scope where name = %(scope)s
on conflict (erasure_id) do nothing

-- name: note_replay
update kb.erasure set replays = replays || %(replay)s::jsonb where erasure_id = %(erasure_id)s

-- name: documents_before
-- Documents of a scope that were known before an instant, to find an erased one among them.
select d.document_key, d.document_id from kb.document d join kb.scope s using (scope_id)
where s.name = %(scope)s and d.created_at < %(before)s and d.state <> 'erased'

-- name: held_only_by
select h.document_id from kb.scope s, kb.held_only_by(s.scope_id, %(audience)s) h
where s.name = %(scope)s

-- name: mentions
select kb.mentions(%(name)s, %(scope_id)s::int)

-- name: forget_actor
select kb.forget_actor(%(actor)s, %(alias)s)

-- name: untold_consumers
-- Consumers that have not been told yet that a document is gone.
select count(distinct y.consumer_id)
from kb.event e join kb.delivery y using (event_no) join kb.scope s using (scope_id)
where s.name = %(scope)s and e.document_id = %(document_id)s

-- name: wanted_blobs
-- Scope and digest of the bytes that versions need, and of uploads that wait to become one.
select s.name as scope, v.digest
from kb.version v join kb.scope s using (scope_id)
where coalesce(v.state, '') not in ('blocked', 'language_refused', 'erased')
union
select s.name, split_part(d.source_uri, '/', 2)
from kb.document d join kb.scope s using (scope_id)
where d.state = 'pending' and d.source_uri like 'stored:%%'
order by 1, 2

-- name: erasures_for_journal
select e.erasure_id, s.name as scope, e.id_digest, encode(i.salt, 'hex') as salt, e.actor,
  e.reason, e.started_at as at
from kb.erasure e join kb.scope s using (scope_id) cross join kb.installation i
order by e.started_at
