-- Watched addresses and vanished files: what a sensor remembers between two looks.

-- name: add_watch
insert into kb.watch (watch_id, scope_id, url, host, expand, audiences, language, every_s,
  on_missing, remove_after, page_limit, next_check_at, created_by, created_at)
values (%(watch_id)s, %(scope_id)s, %(url)s, %(host)s, %(expand)s, %(audiences)s, %(language)s,
  %(every_s)s, %(on_missing)s, %(remove_after)s, %(page_limit)s, %(now)s, %(actor)s, %(now)s)
on conflict (scope_id, url) do nothing
returning watch_id

-- name: change_watch
-- What a declaration says now about a watch that exists.
update kb.watch set audiences = %(audiences)s, language = %(language)s, every_s = %(every_s)s,
  on_missing = %(on_missing)s, remove_after = %(remove_after)s, page_limit = %(page_limit)s
where watch_id = %(watch_id)s

-- name: watches
-- Watches of a scope with sums of their pages, oldest first; of all scopes when none is named.
select w.watch_id, s.name as scope, w.url, w.expand, w.audiences, w.language, w.every_s,
  w.on_missing, w.remove_after, w.page_limit, w.state, w.created_by, w.created_at,
  case when w.expand = 'none' then p.reason else w.reason end as reason,
  greatest(w.checked_at, p.checked_at) as checked_at,
  case when w.expand = 'none' then p.next_check_at
    else least(w.next_check_at, p.next_check_at) end as next_check_at,
  p.changed_at, p.pages, p.states
from kb.watch w
join kb.scope s using (scope_id)
left join lateral (
  select count(*) as pages, max(checked_at) as checked_at, min(next_check_at) as next_check_at,
    max(changed_at) as changed_at, max(reason) as reason,
    coalesce((select jsonb_object_agg(t.state, t.n) from (
      select state, count(*) as n from kb.watched_page
      where watch_id = w.watch_id group by state) t), '{}') as states
  from kb.watched_page where watch_id = w.watch_id) p on true
where (%(scope)s::text is null or s.name = %(scope)s)
  and (%(watch_id)s::text is null or w.watch_id = %(watch_id)s)
  and (%(url)s::text is null or w.url = %(url)s)
order by w.created_at, w.watch_id

-- name: watch_pages
select p.url, p.document_id, p.state, p.reason, p.failures, p.missing, p.checked_at,
  p.changed_at, p.next_check_at
from kb.watched_page p where p.watch_id = %(watch_id)s order by p.page_key limit %(limit)s

-- name: set_watch_state
update kb.watch set state = %(state)s where watch_id = %(watch_id)s

-- name: delete_watch
delete from kb.watch where watch_id = %(watch_id)s

-- name: hurry_watches
-- Makes watches due now; a resting host stays at rest.
with w as (
  update kb.watch set next_check_at = %(now)s
  where watch_id = any (%(watches)s) and next_check_at > %(now)s
)
update kb.watched_page set next_check_at = %(now)s
where watch_id = any (%(watches)s) and next_check_at > %(now)s

-- name: add_watched_pages
-- Pages that a watch names, each once in its scope. One that says it changed is due at once.
insert into kb.watched_page as p (watch_id, scope_id, url, host, listed_change, next_check_at)
select %(watch_id)s, %(scope_id)s, n.url, n.host, n.change, %(now)s
from unnest(%(urls)s::text[], %(hosts)s::text[], %(changes)s::text[]) n (url, host, change)
on conflict (scope_id, url) do update set listed_change = excluded.listed_change,
  next_check_at = least(p.next_check_at, excluded.next_check_at)
where p.watch_id = excluded.watch_id and excluded.listed_change <> ''
  and p.listed_change <> excluded.listed_change

-- name: count_watched_pages
select count(*) from kb.watched_page where watch_id = %(watch_id)s

-- name: page_watched_by
select watch_id from kb.watched_page where scope_id = %(scope_id)s and url = %(url)s

-- name: claim_hosts
-- Hosts that have something due and are not being asked by anybody; they are ours until then.
insert into kb.watched_host as h (host, busy_until)
select host, %(lease)s::timestamptz from (
  select p.host, min(p.next_check_at) as since
  from kb.watched_page p join kb.watch w using (watch_id)
  where w.state = 'active' and p.next_check_at <= %(now)s
    and (%(watches)s::text[] is null or p.watch_id = any (%(watches)s))
  group by p.host
  union
  select w.host, w.next_check_at from kb.watch w
  where w.state = 'active' and w.expand <> 'none' and w.next_check_at <= %(now)s
    and (%(watches)s::text[] is null or w.watch_id = any (%(watches)s))
) due
group by host order by min(since), host limit %(hosts)s
on conflict (host) do update set busy_until = excluded.busy_until
where h.busy_until <= %(now)s
returning host, robots, robots_until

-- name: claim_watched_pages
-- The pages longest due of each claimed host, at most so many of one; a crash returns them later.
with due as (
  select p.page_key, row_number() over (partition by p.host order by p.next_check_at, p.page_key)
    as nth, p.next_check_at
  from kb.watched_page p join kb.watch w using (watch_id)
  where w.state = 'active' and p.next_check_at <= %(now)s and p.host = any (%(hosts)s)
    and (%(watches)s::text[] is null or p.watch_id = any (%(watches)s))
), chosen as (
  select page_key from due where nth <= %(of_host)s
  order by next_check_at, page_key limit %(limit)s
)
update kb.watched_page p set next_check_at = %(lease)s
from chosen c, kb.watch w, kb.scope s
where p.page_key = c.page_key and w.watch_id = p.watch_id and s.scope_id = p.scope_id
  and p.next_check_at <= %(now)s
returning p.page_key, p.watch_id, s.name as scope, p.scope_id, p.url, p.host, p.document_id,
  p.state, p.final_url, p.etag, p.last_modified, p.digest, p.text_digest, p.failures, p.missing,
  w.audiences, w.language, w.every_s, w.on_missing, w.remove_after

-- name: claim_listings
-- Sitemaps and feeds due of the claimed hosts.
update kb.watch w set next_check_at = %(lease)s
from kb.scope s
where s.scope_id = w.scope_id and w.state = 'active' and w.expand <> 'none'
  and w.next_check_at <= %(now)s and w.host = any (%(hosts)s)
  and (%(watches)s::text[] is null or w.watch_id = any (%(watches)s))
returning w.watch_id, s.name as scope, w.scope_id, w.url, w.host, w.expand, w.every_s,
  w.page_limit, w.final_url, w.etag, w.last_modified, w.failures

-- name: release_host
update kb.watched_host set busy_until = %(busy_until)s where host = %(host)s

-- name: save_robots
update kb.watched_host set robots = %(robots)s, robots_until = %(robots_until)s
where host = %(host)s

-- name: give_back_pages
update kb.watched_page set next_check_at = %(now)s where page_key = any (%(pages)s)

-- name: give_back_listings
update kb.watch set next_check_at = %(now)s where watch_id = any (%(watches)s)

-- name: save_listing
update kb.watch set reason = %(reason)s, final_url = %(final_url)s, etag = %(etag)s,
  last_modified = %(last_modified)s, failures = %(failures)s, checked_at = %(now)s,
  next_check_at = %(next_check_at)s
where watch_id = %(watch_id)s

-- name: save_page
-- What a check found. Digests that are null here stay as they were.
update kb.watched_page set state = %(state)s, reason = %(reason)s, final_url = %(final_url)s,
  etag = %(etag)s, last_modified = %(last_modified)s, digest = coalesce(%(digest)s, digest),
  failures = %(failures)s, missing = %(missing)s, checked_at = %(now)s,
  next_check_at = %(next_check_at)s
where page_key = %(page_key)s

-- name: save_page_change
-- The page's text was taken as a version of its document.
update kb.watched_page set document_id = %(document_id)s, text_digest = %(text_digest)s,
  changed_at = %(now)s
where page_key = %(page_key)s

-- name: folder_documents
-- Documents of a scope whose file lies, or lay, below a folder.
select d.document_key, d.document_id, d.source_uri, d.state, v.digest, v.size_bytes, x.since,
  x.removed_at
from kb.document d
join kb.scope s using (scope_id)
left join kb.version v on v.document_key = d.document_key and v.version = d.latest_version
left join kb.vanished x on x.document_key = d.document_key
where s.name = %(scope)s and d.source_kind = 'dropzone' and d.state <> 'erased'
  and starts_with(d.source_uri, %(prefix)s)

-- name: add_vanished
insert into kb.vanished (document_key, scope_id, since)
select document_key, scope_id, %(now)s from kb.document where document_key = any (%(documents)s)
on conflict (document_key) do nothing

-- name: set_vanished_removed
update kb.vanished set removed_at = %(now)s where document_key = %(document_key)s

-- name: forget_vanished
delete from kb.vanished where document_key = any (%(documents)s)
