-- The knowledge store of `postgres`: scopes, documents as they hold now, embedding work, events.

-- name: create_scope
insert into kb.scope (name, title, settings) values (%(name)s, %(title)s, %(settings)s)
on conflict (name) do nothing returning scope_id

-- name: show_scope
select name, title, settings, closed_at from kb.scope where name = %(name)s

-- name: lock_scope
-- Who changes settings reads them first: the next one has to see what this one made of them.
select from kb.scope where name = %(name)s for update

-- name: show_scopes
select name, title, settings, closed_at from kb.scope order by name

-- name: configure_scope
-- Known settings are replaced as a whole; keys of other versions stay.
update kb.scope set settings = (settings - %(known)s::text[]) || %(settings)s where name = %(name)s

-- name: rename_scope
update kb.scope set title = %(title)s where name = %(name)s

-- name: unfinished_jobs
-- What people uploaded for a scope and is not through yet.
select count(*) as jobs from kb.job where scope = %(name)s and state in ('queued', 'running')

-- name: close_scope
update kb.scope set closed_at = %(at)s where name = %(name)s

-- name: log_scope
insert into kb.scope_log (scope_id, event, actor, details)
select scope_id, %(event)s, %(actor)s, %(details)s from kb.scope where name = %(name)s

-- name: scope_history
select l.at, l.event, l.actor, l.details
from kb.scope_log l join kb.scope s using (scope_id) where s.name = %(name)s order by l.entry_no

-- name: scope_counts
-- Documents that hold now and their passages, by scope.
select s.name, count(*) as documents, coalesce(sum(p.passages), 0)::bigint as passages
from kb.scope s
join kb.document d using (scope_id)
join kb.validity x on x.document_key = d.document_key and upper_inf(x.known)
  and x.valid @> %(now)s::timestamptz
cross join lateral (
  select count(*) as passages from kb.passage p where p.version_key = x.version_key) p
where %(scope)s::text is null or s.name = %(scope)s
group by s.name

-- name: outlived_documents
-- Published documents of a scope whose newest version began to hold before an instant.
select d.document_id
from kb.document d join kb.scope s using (scope_id)
join kb.validity x on x.document_key = d.document_key and upper_inf(x.known) and upper_inf(x.valid)
where s.name = %(scope)s and d.state = 'indexed' and lower(x.valid) < %(before)s
  and d.updated_at < %(before)s
order by d.document_key limit %(limit)s

-- name: held_documents
-- Documents of a scope that hold now, newest first.
select d.document_key, d.document_id, v.version, v.digest, v.title, v.media_type, v.language,
  d.audiences, lower(x.valid) as valid_from, (
    select count(*) from kb.passage p where p.version_key = v.version_key) as passages
from kb.scope s
join kb.document d using (scope_id)
join kb.validity x on x.document_key = d.document_key and upper_inf(x.known)
  and x.valid @> %(now)s::timestamptz
join kb.version v on v.version_key = x.version_key
where s.name = %(scope)s
  and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s::text[])
  and (%(document_id)s::text is null or d.document_id = %(document_id)s)
  and (%(before)s::bigint is null or d.document_key < %(before)s)
order by d.document_key desc limit %(limit)s

-- name: held_passages
-- Passages of versions that hold now: of one document, or the one with this id.
select p.passage_id, d.document_id, v.version, p.text, p.context, v.title, p.heading_path, p.page,
  p.byte_start, p.byte_end
from kb.scope s
join kb.document d using (scope_id)
join kb.validity x on x.document_key = d.document_key and upper_inf(x.known)
  and x.valid @> %(now)s::timestamptz
join kb.version v on v.version_key = x.version_key
join kb.passage p on p.version_key = v.version_key
where s.name = %(scope)s
  and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s::text[])
  and (%(document_id)s::text is null or d.document_id = %(document_id)s)
  and (%(passage_id)s::text is null
    or p.scope_id = s.scope_id and p.passage_id = %(passage_id)s)
  and p.heading_path[1:cardinality(%(under)s::text[])] = %(under)s::text[]
order by d.document_key, p.ordinal

-- name: publish_version
-- As put_version, but vectors may come along, and what has none yet waits; see migration 0029.
select state, passages, carried, waiting from kb.put_version(%(version_key)s,
  %(valid_from)s, %(audiences)s::text[], %(model_key)s::int, %(analyzer)s,
  %(average_length)s::real, %(ordinals)s::int[], %(bm)s::sparsevec[], %(ends)s::int[],
  %(keys)s::int[], true, %(given)s::int[], %(vectors)s::halfvec[])

-- name: attach_vectors
select kb.attach_vectors(%(version_key)s, %(model_key)s)

-- name: missing_texts
-- Embedded texts of a version's passages that have no vector, each once, in reading order.
select p.embed_hash, min(p.context) as context, min(p.text) as text
from kb.passage p
where p.version_key = %(version_key)s and not exists (select from kb.embedding e
  where e.model_key = %(model_key)s and e.passage_key = p.passage_key offset 0)
group by p.embed_hash order by min(p.ordinal)

-- name: expect_vectors
insert into kb.embed_work (document_key, model_key, scope_id)
values (%(document_key)s, %(model_key)s, %(scope_id)s)
on conflict (document_key, model_key) do update
  set state = 'pending', attempts = 0, error = '', holder = null, held_until = null
where %(anew)s

-- name: vectors_arrived
delete from kb.embed_work
where document_key = %(document_key)s and model_key = %(model_key)s
  and (%(held_too)s or state <> 'processing')

-- name: embed_works
-- Documents whose embedding is not done, oldest first.
select d.document_id, w.state, n.waiting, w.attempts, w.error
from kb.embed_work w
join kb.document d using (document_key)
join kb.version v on v.document_key = d.document_key and v.version = d.latest_version
cross join lateral (
  select count(*) as waiting from kb.passage p
  where p.version_key = v.version_key and not exists (select from kb.embedding e
    where e.model_key = w.model_key and e.passage_key = p.passage_key offset 0)) n
where w.scope_id = %(scope_id)s and w.model_key = %(model_key)s
  and (%(removed_too)s or d.state not in ('removed', 'erased')) and n.waiting > 0
  and (%(document_id)s::text is null or d.document_id = %(document_id)s)
order by w.document_key limit %(limit)s

-- name: claim_embed_work
update kb.embed_work u
set state = 'processing', holder = %(holder)s, held_until = %(until)s
from (
  select w.document_key, d.document_id
  from kb.embed_work w join kb.document d using (document_key)
  where w.scope_id = %(scope_id)s and w.model_key = %(model_key)s and w.state = 'pending'
    and d.state not in ('removed', 'erased')
  order by w.document_key limit 1 for update of w skip locked) found
where u.document_key = found.document_key and u.model_key = %(model_key)s
returning found.document_id

-- name: held_embed_work
select w.holder from kb.embed_work w join kb.document d using (document_key)
where w.scope_id = %(scope_id)s and w.model_key = %(model_key)s
  and d.document_id = %(document_id)s for update of w

-- name: lapsed_embed_work
select d.document_id, w.holder from kb.embed_work w join kb.document d using (document_key)
where w.scope_id = %(scope_id)s and w.model_key = %(model_key)s and w.state = 'processing'
  and w.held_until <= %(now)s
order by w.document_key for update of w skip locked

-- name: settle_embed_work
update kb.embed_work set holder = null, held_until = null,
  state = case when %(error)s <> '' and attempts + 1 >= %(attempts)s then 'failed'
    else 'pending' end,
  attempts = attempts + (%(error)s <> '')::int,
  error = case when %(error)s <> '' then %(error)s else error end
where document_key = %(document_key)s and model_key = %(model_key)s

-- name: requeue_embed_work
update kb.embed_work w set state = 'pending', attempts = 0, error = ''
from kb.document d
where d.document_key = w.document_key and w.scope_id = %(scope_id)s
  and w.model_key = %(model_key)s and d.document_id = %(document_id)s and w.state = 'failed'

-- name: subscribe
insert into kb.consumer (name, scope_id) values (%(name)s, %(scope_id)s) on conflict do nothing

-- name: unsubscribe
delete from kb.consumer
where name = %(name)s and scope_id is not distinct from %(scope_id)s

-- name: find_consumer
select consumer_id from kb.consumer
where name = %(name)s and scope_id is not distinct from %(scope_id)s

-- name: list_consumers
-- Consumers with what waits for them.
select c.name, s.name as scope, count(y.event_no) as waiting, min(e.at) as since,
  coalesce(max(y.attempts), 0) as attempts
from kb.consumer c left join kb.scope s using (scope_id)
left join kb.delivery y using (consumer_id) left join kb.event e using (event_no)
group by c.consumer_id, c.name, s.name order by c.name, s.name

-- name: waiting_events
select e.event_id::text, s.name as scope, e.document_id, e.kind, e.version
from kb.delivery y join kb.event e using (event_no) join kb.scope s using (scope_id)
where y.consumer_id = %(consumer_id)s
order by e.event_no limit %(limit)s

-- name: acknowledge_events
delete from kb.delivery y using kb.event e
where y.event_no = e.event_no and y.consumer_id = %(consumer_id)s
  and e.event_id = any (%(event_ids)s::uuid[])

-- name: refuse_event
update kb.delivery y set attempts = y.attempts + 1, error = %(error)s
from kb.event e
where y.event_no = e.event_no and y.consumer_id = %(consumer_id)s
  and e.event_id = %(event_id)s::uuid

-- name: drop_told_events
-- Events that nobody waits for any more.
delete from kb.event e
where not exists (select from kb.delivery y where y.event_no = e.event_no)
  and (%(event_ids)s::text[] is null or e.event_id = any (%(event_ids)s::uuid[]))
