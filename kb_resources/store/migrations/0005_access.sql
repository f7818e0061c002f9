-- Who may come in and what they start: API keys, members, sessions, jobs, and a log of changes.
-- Identity rows belong to the reading side alone; the pipeline has no right on them.

create table kb.api_key (
  key_id         text primary key check (key_id ~ '^[a-z0-9]{12}$'),
  name           text not null check (length(name) between 1 and 200),
  secret_hash    bytea not null check (length(secret_hash) = 32),
  previous_hash  bytea check (length(previous_hash) = 32),
  previous_until timestamptz,
  role           text not null check (role in ('viewer', 'editor', 'admin', 'system')),
  scopes         text[] check (scopes <> '{}'),
  audiences      text[] not null default '{}',
  created_by     text not null check (created_by <> ''),
  created_at     timestamptz not null default clock_timestamp(),
  expires_at     timestamptz,
  rotated_at     timestamptz,
  revoked_at     timestamptz,
  last_used_at   timestamptz,
  check ((previous_hash is null) = (previous_until is null))
) with (fillfactor = 80);
comment on table kb.api_key is 'Keys by a keyed hash; a rotated one still holds until previous_until.';
comment on column kb.api_key.scopes is 'Scope names it opens; null: all.';

create table kb.member (
  subject        text primary key check (length(subject) between 1 and 255),
  name           text not null default '' check (length(name) <= 200),
  role           text not null check (role in ('viewer', 'editor', 'admin')),
  scopes         text[] check (scopes <> '{}'),
  audiences      text[] not null default '{}',
  created_by     text not null check (created_by <> ''),
  created_at     timestamptz not null default clock_timestamp(),
  removed_at     timestamptz
);
comment on table kb.member is 'People an identity provider signs in, and what they may do here.';

create table kb.session (
  session_hash   bytea primary key check (length(session_hash) = 32),
  kind           text not null check (kind in ('key', 'member')),
  subject        text not null,
  payload        bytea not null,
  created_at     timestamptz not null default clock_timestamp(),
  expires_at     timestamptz not null
);
create index session_subject on kb.session (kind, subject);
create index session_expiry on kb.session (expires_at);
comment on table kb.session is 'Signed-in browsers; the payload opens with the cookie only.';

-- Append-only: who changed whose access, when.
create table kb.access_event (
  event_id       bigint generated always as identity primary key,
  at             timestamptz not null default clock_timestamp(),
  actor          text not null check (actor <> ''),
  event          text not null,
  subject        text not null,
  details        jsonb not null default '{}'
);
create trigger access_event_append_only before update or delete on kb.access_event
  for each row execute function kb.refuse_change();

create table kb.job (
  job_no         bigint generated always as identity primary key,
  job_id         text not null unique check (job_id ~ '^[a-z0-9]{8,64}$'),
  scope          text not null check (scope ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  document_id    text not null check (document_id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$'),
  kind           text not null check (kind in ('ingest', 'resume')),
  state          text not null default 'queued'
    check (state in ('queued', 'running', 'done', 'failed')),
  actor          text not null check (actor <> ''),
  request        jsonb not null default '{}',
  documents      jsonb not null default '[]',
  reason         text not null default '',
  attempts       int not null default 0,
  created_at     timestamptz not null default clock_timestamp(),
  started_at     timestamptz,
  finished_at    timestamptz,
  check (state <> 'failed' or reason <> '')
) with (fillfactor = 80);
create index job_waiting on kb.job (job_no) where state in ('queued', 'running');
create index job_document on kb.job (scope, document_id);
comment on table kb.job is 'Work people asked for over HTTP; one worker takes it in this order.';

-- A knowledge base whose last administrator is gone could only be opened by its owner again.
create function kb.keep_an_admin() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.admins', 0));
  if not exists (select from kb.api_key where role = 'admin' and revoked_at is null
       and (expires_at is null or expires_at > now()))
     and not exists (select from kb.member where role = 'admin' and removed_at is null) then
    raise exception 'this is the last administrator'
      using errcode = 'KB005', hint = 'Make another key or member an administrator first.';
  end if;
  return null;
end $$;
create trigger keep_an_admin after update on kb.api_key for each row
  when (old.role = 'admin' and old.revoked_at is null
    and (new.role <> 'admin' or new.revoked_at is not null
      or new.expires_at is distinct from old.expires_at))
  execute function kb.keep_an_admin();
create trigger keep_an_admin after update on kb.member for each row
  when (old.role = 'admin' and old.removed_at is null
    and (new.role <> 'admin' or new.removed_at is not null))
  execute function kb.keep_an_admin();
create trigger keep_an_admin_deleted after delete on kb.api_key for each row
  when (old.role = 'admin' and old.revoked_at is null) execute function kb.keep_an_admin();
create trigger keep_an_admin_deleted after delete on kb.member for each row
  when (old.role = 'admin' and old.removed_at is null) execute function kb.keep_an_admin();

-- Names, titles and sizes of scopes for those who may use them; null: all. The caller decides who
-- may, since row level security shows a session only the scopes it was opened for.
create function kb.scope_overview(p_names text[])
returns table (name text, title text, documents bigint)
language sql stable security definer set search_path = kb, pg_temp as $$
  select s.name, coalesce(s.title, s.name), (select count(*) from kb.document d
    where d.scope_id = s.scope_id and d.state not in ('removed', 'erased'))
  from kb.scope s
  where s.closed_at is null and (p_names is null or s.name = any (p_names))
  order by s.name
$$;
revoke all on function kb.scope_overview from public;

-- What the installation holds, in numbers without names, for the metrics.
create function kb.backlog()
returns table (documents jsonb, verdicts jsonb, jobs jsonb, oldest_pending_s double precision)
language sql stable security definer set search_path = kb, pg_temp as $$
  select
    (select coalesce(jsonb_object_agg(state, n), '{}') from
      (select state, count(*) n from kb.document group by state) d),
    (select coalesce(jsonb_object_agg(verdict, n), '{}') from
      (select verdict, count(*) n from kb.version where verdict is not null group by verdict) v),
    (select coalesce(jsonb_object_agg(state, n), '{}') from
      (select state, count(*) n from kb.job group by state) j),
    (select coalesce(extract(epoch from clock_timestamp() - min(updated_at)), 0)
      from kb.document where state = 'pending')
$$;
revoke all on function kb.backlog from public;
grant execute on function kb.scope_overview, kb.backlog to kb_app;

grant select, insert on kb.api_key, kb.member, kb.access_event to kb_app;
grant update (name, secret_hash, previous_hash, previous_until, role, scopes, audiences,
  expires_at, rotated_at, revoked_at, last_used_at) on kb.api_key to kb_app;
grant update (name, role, scopes, audiences, removed_at) on kb.member to kb_app;
grant select, insert, delete on kb.session to kb_app;
grant select, insert on kb.job to kb_app;
grant select, insert, update, delete on kb.job to kb_pipeline;

do $$
declare
  table_name text;
begin
  foreach table_name in array array['api_key', 'member', 'session', 'access_event'] loop
    execute format('alter table kb.%I enable row level security', table_name);
    execute format(
      'create policy identity on kb.%I to kb_app using (true) with check (true)', table_name);
  end loop;
end $$;
alter table kb.job enable row level security;
create policy pipeline on kb.job to kb_pipeline using (true) with check (true);
create policy reader on kb.job to kb_app
  using (scope = any (string_to_array(current_setting('app.scope', true), ',')))
  with check (scope = any (string_to_array(current_setting('app.scope', true), ',')));
