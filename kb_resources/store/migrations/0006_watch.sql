-- Sources that change by themselves: watched addresses, and files that vanished from a folder.
-- All that a sensor has to remember is here, so that no cursor can be lost or grow.

create table kb.watch (
  watch_id      text primary key check (watch_id ~ '^[a-z0-9]{12}$'),
  scope_id      int not null references kb.scope,
  url           text not null check (length(url) between 1 and 4096),
  host          text not null,
  expand        text not null check (expand in ('none', 'sitemap', 'feed')),
  audiences     text[] not null default '{}',
  language      text,
  every_s       int not null check (every_s between 60 and 31536000),
  on_missing    text not null check (on_missing in ('keep', 'remove')),
  remove_after  int not null check (remove_after between 1 and 100),
  page_limit    int not null check (page_limit between 1 and 50000),
  state         text not null default 'active' check (state in ('active', 'paused')),
  -- What follows is the state of the listing itself, where the watch expands one.
  reason        text not null default '',
  final_url     text,
  etag          text,
  last_modified text,
  failures      int not null default 0,
  checked_at    timestamptz,
  next_check_at timestamptz not null,
  created_by    text not null check (created_by <> ''),
  created_at    timestamptz not null,
  unique (scope_id, url)
);
create index watch_due on kb.watch (next_check_at) where expand <> 'none';
comment on table kb.watch is 'An address somebody asked to be watched: one page, a sitemap or a feed.';

create table kb.watched_page (
  page_key      bigint generated always as identity primary key,
  watch_id      text not null references kb.watch on delete cascade,
  scope_id      int not null references kb.scope,
  url           text not null check (length(url) between 1 and 4096),
  host          text not null,
  document_id   text,
  state         text not null default 'new' check (state in (
    'new', 'current', 'missing', 'failing', 'refused', 'removed')),
  reason        text not null default '',
  listed_change text not null default '',
  final_url     text,
  etag          text,
  last_modified text,
  digest        text check (digest ~ '^[0-9a-f]{64}$'),
  text_digest   text check (text_digest ~ '^[0-9a-f]{64}$'),
  failures      int not null default 0,
  missing       int not null default 0,
  checked_at    timestamptz,
  changed_at    timestamptz,
  next_check_at timestamptz not null,
  unique (scope_id, url)
) with (fillfactor = 80);
create index watched_page_due on kb.watched_page (next_check_at);
create index watched_page_watch on kb.watched_page (watch_id);
create index watched_page_document on kb.watched_page (scope_id, document_id);
comment on table kb.watched_page is 'One page of a watch: what it was last seen as, and when next.';
comment on column kb.watched_page.digest is 'SHA-256 of the bytes last seen.';
comment on column kb.watched_page.text_digest is
  'SHA-256 of the canonical text last taken; while it is the same there is no new version.';

-- A site as all watches see it: who is asking it now, until when it wants rest, its robots.txt.
create table kb.watched_host (
  host          text primary key,
  busy_until    timestamptz not null,
  robots        text,
  robots_until  timestamptz
) with (fillfactor = 80);

-- A file that is no longer in its watched folder, since when, and whether that removed it.
create table kb.vanished (
  document_key  bigint primary key references kb.document on delete cascade,
  scope_id      int not null references kb.scope,
  since         timestamptz not null,
  removed_at    timestamptz
);
comment on table kb.vanished is
  'Documents whose file is gone; removed_at tells a removal by the folder from one by a person.';

grant select, insert, update, delete on kb.watch, kb.watched_page, kb.watched_host, kb.vanished
  to kb_pipeline;
grant select on kb.watch, kb.watched_page to kb_app;

do $$
declare
  table_name text;
begin
  foreach table_name in array array['watch', 'watched_page', 'vanished'] loop
    execute format('alter table kb.%I enable row level security', table_name);
    execute format(
      'create policy pipeline on kb.%I to kb_pipeline using (true) with check (true)', table_name);
  end loop;
  foreach table_name in array array['watch', 'watched_page'] loop
    execute format('create policy reader on kb.%I for select to kb_app
      using (scope_id = any ((select kb.allowed_scope_ids())::int[]))', table_name);
  end loop;
end $$;
