-- Keys, members, sessions, their log, and jobs. Run as the reading role; jobs also as the pipeline.

-- name: add_key
insert into kb.api_key (key_id, name, secret_hash, role, scopes, audiences, created_by, expires_at)
values (%(key_id)s, %(name)s, %(secret_hash)s, %(role)s, %(scopes)s, %(audiences)s, %(created_by)s,
  %(expires_at)s)

-- name: get_key
select key_id, name, secret_hash, previous_hash, previous_until, role, scopes, audiences,
  created_by, created_at, expires_at, rotated_at, revoked_at, last_used_at
from kb.api_key where key_id = %(key_id)s

-- name: list_keys
-- Newest first, page by page; a key is listed for those who may use every scope it opens.
select key_id, name, secret_hash, previous_hash, previous_until, role, scopes, audiences,
  created_by, created_at, expires_at, rotated_at, revoked_at, last_used_at
from kb.api_key
where (%(before)s::timestamptz is null or created_at < %(before)s)
  and (%(scopes)s::text[] is null or scopes <@ %(scopes)s)
order by created_at desc limit %(limit)s

-- name: rotate_key
-- The old secret holds until `previous_until`; nothing happens to a revoked key.
update kb.api_key set previous_hash = secret_hash, previous_until = %(previous_until)s,
  secret_hash = %(secret_hash)s, rotated_at = clock_timestamp()
where key_id = %(key_id)s and revoked_at is null

-- name: revoke_key
update kb.api_key set revoked_at = clock_timestamp(), previous_hash = null, previous_until = null
where key_id = %(key_id)s and revoked_at is null

-- name: touch_key
-- When it was last used, to the minute, so that reading does not write each time.
update kb.api_key set last_used_at = clock_timestamp()
where key_id = %(key_id)s
  and (last_used_at is null or last_used_at < clock_timestamp() - interval '1 minute')

-- name: has_admin
-- Somebody who may make keys for every scope.
select exists (select from kb.api_key where role in ('admin', 'system') and scopes is null
    and revoked_at is null and (expires_at is null or expires_at > %(now)s))
  or exists (select from kb.member where role = 'admin' and scopes is null and removed_at is null)

-- name: put_member
insert into kb.member (subject, name, role, scopes, audiences, created_by)
values (%(subject)s, %(name)s, %(role)s, %(scopes)s, %(audiences)s, %(created_by)s)
on conflict (subject) do update set name = excluded.name, role = excluded.role,
  scopes = excluded.scopes, audiences = excluded.audiences, removed_at = null

-- name: get_member
select subject, name, role, scopes, audiences, created_by, created_at, removed_at
from kb.member where subject = %(subject)s

-- name: list_members
select subject, name, role, scopes, audiences, created_by, created_at, removed_at
from kb.member order by subject

-- name: remove_member
update kb.member set removed_at = clock_timestamp()
where subject = %(subject)s and removed_at is null

-- name: add_session
insert into kb.session (session_hash, kind, subject, payload, expires_at)
values (%(session_hash)s, %(kind)s, %(subject)s, %(payload)s, %(expires_at)s)

-- name: get_session
select kind, subject, payload, expires_at from kb.session
where session_hash = %(session_hash)s and expires_at > %(now)s

-- name: end_session
delete from kb.session where session_hash = %(session_hash)s

-- name: end_sessions_of
delete from kb.session where kind = %(kind)s and subject = %(subject)s

-- name: drop_expired_sessions
delete from kb.session where expires_at <= %(now)s

-- name: add_access_event
insert into kb.access_event (actor, event, subject, details)
values (%(actor)s, %(event)s, %(subject)s, %(details)s)

-- name: list_access_events
select at, actor, event, subject, details from kb.access_event order by event_id

-- name: scope_overview
select name, title, documents from kb.scope_overview(%(names)s)

-- name: readable_documents
-- Documents of scopes that somebody may read; scopes without one are left out.
select s.name, count(*) as documents from kb.document d join kb.scope s using (scope_id)
where d.state not in ('removed', 'erased')
  and (d.audiences = '{}' or d.audiences && %(audiences)s::text[])
group by s.name

-- name: backlog
select documents, verdicts, jobs, oldest_pending_s from kb.backlog()

-- name: add_job
insert into kb.job (job_id, scope, document_id, kind, actor, request)
values (%(job_id)s, %(scope)s, %(document_id)s, %(kind)s, %(actor)s, %(request)s)

-- name: get_job
select job_no, job_id, scope, document_id, kind, state, actor, request, documents, reason, attempts,
  created_at, started_at, finished_at
from kb.job where job_id = %(job_id)s

-- name: scopes_of_jobs
select scope from kb.scopes_of_jobs() scope

-- name: list_jobs
-- Newest first, page by page; of one actor or of all.
select job_no, job_id, scope, document_id, kind, state, actor, request, documents, reason, attempts,
  created_at, started_at, finished_at
from kb.job
where (%(actor)s::text is null or actor = %(actor)s)
  and (%(before)s::bigint is null or job_no < %(before)s)
order by job_no desc limit %(limit)s

-- name: claim_job
-- The oldest waiting job becomes running; one worker at a time holds the lock that allows this.
update kb.job set state = 'running', attempts = attempts + 1, started_at = clock_timestamp()
where job_no = (select job_no from kb.job where state = 'queued' order by job_no limit 1
  for update skip locked)
returning job_no, job_id, scope, document_id, kind, state, actor, request, documents, reason,
  attempts, created_at, started_at, finished_at

-- name: finish_job
update kb.job set state = %(state)s, documents = %(documents)s, reason = %(reason)s,
  finished_at = clock_timestamp()
where job_no = %(job_no)s and state = 'running'

-- name: recover_jobs
-- Whoever holds the worker's lock knows that nobody else runs: what says so was interrupted.
update kb.job set
  state = case when attempts < %(attempts)s then 'queued' else 'failed' end,
  reason = case when attempts < %(attempts)s then ''
    else 'Interrupted ' || attempts || ' times; upload the file again.' end,
  finished_at = case when attempts < %(attempts)s then null else clock_timestamp() end
where state = 'running'
returning job_id, state

-- name: worker_runs
select exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
  and classid = %(high)s::oid and objid = %(low)s::oid
  and database = (select oid from pg_database where datname = current_database()))

-- name: any_job_waiting
select exists (select from kb.job where state in ('queued', 'running'))

-- name: waiting_job_ids
select job_id from kb.job where job_id = any (%(job_ids)s) and state in ('queued', 'running')

-- name: count_waiting_jobs
select count(*) from kb.job where state = 'queued'

-- name: requeue_job
-- The worker was asked to stop: the job waits again and the attempt does not count.
update kb.job set state = 'queued', attempts = attempts - 1, started_at = null
where job_no = %(job_no)s and state = 'running'

-- name: id_awaited_by_others
-- Whether a job that waits will make, or give to others, a document of this id.
select exists (select from kb.job
  where scope = %(scope)s and document_id = %(document_id)s and kind = 'ingest'
    and state in ('queued', 'running') and request->'audiences' <> '[]'
    and not request->'audiences' ?| %(readers)s::text[])

-- name: digest_in_scope
select exists (select from kb.version v join kb.scope s using (scope_id)
  where s.name = %(scope)s and v.digest = %(digest)s)
