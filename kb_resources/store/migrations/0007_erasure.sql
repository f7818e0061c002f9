-- Audiences decided by people, removal and restoring, proof of the lifecycle log, erasure.

-- Audiences ------------------------------------------------------------------------------------

alter table kb.document add column audiences_set_by text;
comment on column kb.document.audiences_set_by is
  'Who decided the audiences; the source''s own no longer apply then. Null: the source says them.';

-- What a person decided outlives every later run of the source, also one that was under way.
create or replace function kb.set_audiences(p_document_key bigint, p_audiences text[])
returns text[] language plpgsql as $$
declare
  held text[];
  decided boolean;
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.document', p_document_key));
  select audiences, audiences_set_by is not null into held, decided
  from kb.document where document_key = p_document_key;
  if decided or (held @> p_audiences and p_audiences @> held) then
    return held;
  end if;
  update kb.document set audiences = p_audiences, updated_at = now()
  where document_key = p_document_key;
  return p_audiences;
end $$;

create function kb.decide_audiences(p_document_key bigint, p_audiences text[], p_actor text)
returns text[] language plpgsql as $$
declare
  held text[];
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.document', p_document_key));
  select audiences into held from kb.document where document_key = p_document_key;
  update kb.document set audiences = p_audiences, audiences_set_by = p_actor, updated_at = now()
  where document_key = p_document_key;
  return held;
end $$;

-- Removal --------------------------------------------------------------------------------------

-- Removed and erased are left by a decision only, never by a run that was under way meanwhile.
create function kb.guard_removed() returns trigger language plpgsql as $$
begin
  if current_setting('kb.deciding', true) is distinct from 'on' then
    raise exception 'the document is % and stays so until somebody restores it', old.state
      using errcode = 'KB001', hint = 'Bring it back with kb documents restore.';
  end if;
  return new;
end $$;
create trigger removed_stays before update of state on kb.document for each row
  when (old.state in ('removed', 'erased') and new.state is distinct from old.state)
  execute function kb.guard_removed();

create function kb.guard_validity() returns trigger language plpgsql as $$
begin
  if exists (select 1 from kb.document
    where document_key = new.document_key and state in ('removed', 'erased')) then
    raise exception 'the document was removed and cannot be published'
      using errcode = 'KB001', hint = 'Bring it back with kb documents restore.';
  end if;
  return new;
end $$;
create trigger removed_stays before insert on kb.validity for each row
  when (upper_inf(new.valid) and upper_inf(new.known)) execute function kb.guard_validity();

-- Takes a document out of search; all its versions and texts stay. Returns intervals ended, null
-- where it was removed already.
create function kb.remove_document(p_document_key bigint, p_at timestamptz, p_reason text)
returns int language plpgsql as $$
declare
  held text;
  ended int;
begin
  perform set_config('kb.deciding', 'on', true);
  perform pg_advisory_xact_lock(hashtextextended('kb.document', p_document_key));
  select state into held from kb.document where document_key = p_document_key for update;
  if held = 'erased' then
    raise exception 'the document was erased' using errcode = 'KB001', hint = 'Nothing is left.';
  elsif held = 'removed' then
    return null;
  end if;
  ended := kb.close_validity(p_document_key, p_at);
  update kb.document set state = 'removed', reason = p_reason, duplicate_of = null,
    settled_fingerprint = null, updated_at = now()
  where document_key = p_document_key;
  return ended;
end $$;

-- Brings a removed document back: what was published holds again from p_at on, what waited or was
-- refused stands where it stood, everything else goes through the line. Returns the state.
create function kb.restore_document(p_document_key bigint, p_at timestamptz)
returns text language plpgsql as $$
declare
  d kb.document;
  v kb.version;
  stands text := 'pending';
begin
  perform set_config('kb.deciding', 'on', true);
  perform pg_advisory_xact_lock(hashtextextended('kb.document', p_document_key));
  select * into d from kb.document where document_key = p_document_key for update;
  if d.state not in ('removed', 'erased') then
    return null;
  end if;
  select * into v from kb.version
  where document_key = p_document_key and version = d.latest_version for share;
  if v.state is not null and v.state <> 'indexed' then
    stands := v.state;
  elsif kb.is_cleared(v.version_key)
    and exists (select 1 from kb.passage where version_key = v.version_key) then
    stands := 'indexed';
  end if;
  update kb.document set state = stands,
    reason = case when stands in ('pending', 'indexed') then '' else v.reason end,
    settled_fingerprint = null, updated_at = now()
  where document_key = p_document_key;
  if stands = 'indexed' then
    perform kb.open_validity(v.version_key, p_at);
    perform kb.sync_validity(p_document_key);
  end if;
  return stands;
end $$;

-- Proof of the lifecycle log -------------------------------------------------------------------

create function kb.lifecycle_hash(
  p_previous text, p_version int, p_event text, p_actor text, p_details jsonb, p_at timestamptz
) returns text language sql immutable as $$
  select encode(sha256(convert_to(concat_ws(E'\x1f', p_previous, coalesce(p_version::text, ''),
    p_event, p_actor, p_details::text,
    (extract(epoch from p_at) * 1000000)::bigint::text), 'UTF8')), 'hex')
$$;

-- The newest entry of each chain, so that a chain cut off at its end is noticed too.
create table kb.lifecycle_head (
  document_key  bigint primary key references kb.document on delete cascade,
  scope_id      int not null references kb.scope,
  entries       bigint not null,
  hash          text not null
) with (fillfactor = 70);
insert into kb.lifecycle_head (document_key, scope_id, entries, hash)
select distinct on (document_key) document_key, scope_id,
  count(*) over (partition by document_key), hash
from kb.lifecycle order by document_key, lifecycle_id desc;
alter table kb.lifecycle_head enable row level security;
create policy pipeline on kb.lifecycle_head to kb_pipeline using (true) with check (true);
create policy reader on kb.lifecycle_head for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]));
grant select on kb.lifecycle_head to kb_pipeline, kb_app;

-- The number is given under the lock: the order of numbers is the order of the chain.
create or replace function kb.lifecycle_chain() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.lifecycle', new.document_key));
  new.lifecycle_id := nextval(pg_get_serial_sequence('kb.lifecycle', 'lifecycle_id'));
  new.previous_hash := coalesce(
    (select hash from kb.lifecycle_head where document_key = new.document_key), '');
  new.hash := kb.lifecycle_hash(
    new.previous_hash, new.version, new.event, new.actor, new.details, new.at);
  insert into kb.lifecycle_head as h (document_key, scope_id, entries, hash)
  values (new.document_key, new.scope_id, 1, new.hash)
  on conflict (document_key) do update set entries = h.entries + 1, hash = excluded.hash;
  return new;
end $$;

-- What is wrong with the chains: changed entries, gaps, chains cut off or without a head.
create function kb.verify_lifecycle(p_scope_id int, p_document_key bigint)
returns table (document_key bigint, lifecycle_id bigint, problem text)
language sql stable as $$
  with entry as (
    select l.*, lag(l.hash) over chain as before, lead(l.lifecycle_id) over chain as next,
      row_number() over chain as nth
    from kb.lifecycle l
    where (p_scope_id is null or l.scope_id = p_scope_id)
      and (p_document_key is null or l.document_key = p_document_key)
    window chain as (partition by l.document_key order by l.lifecycle_id)
  )
  select e.document_key, e.lifecycle_id, 'changed' from entry e
  where e.hash <> kb.lifecycle_hash(e.previous_hash, e.version, e.event, e.actor, e.details, e.at)
  union all
  select e.document_key, e.lifecycle_id, 'gap before' from entry e
  where e.previous_hash <> coalesce(e.before, '')
  union all
  select coalesce(e.document_key, h.document_key), e.lifecycle_id, 'cut off after'
  from (select * from entry where next is null) e
  full join (select * from kb.lifecycle_head
    where (p_scope_id is null or scope_id = p_scope_id)
      and (p_document_key is null or document_key = p_document_key)) h
    on h.document_key = e.document_key
  where (h.hash, h.entries) is distinct from (e.hash, e.nth)
  order by 1, 2
$$;

-- Forgetting -----------------------------------------------------------------------------------

-- Append-only, but for the functions below, which belong to the owner and leave their own entry.
create or replace function kb.refuse_change() returns trigger language plpgsql as $$
begin
  if current_setting('kb.forgetting', true) = 'on' then return coalesce(new, old); end if;
  -- A cascade from erasing the document runs one trigger level deeper.
  if tg_op = 'DELETE' and pg_trigger_depth() > 1 then return old; end if;
  raise exception 'kb.% is append-only', tg_table_name using errcode = 'KB002';
end $$;

-- Chains a document's entries anew after one of them was rewritten; the old head is kept in it.
create function kb.rechain(p_document_key bigint, p_why text) returns void
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  entry kb.lifecycle;
  head kb.lifecycle_head;
  last text := '';
begin
  perform set_config('kb.forgetting', 'on', true);
  perform pg_advisory_xact_lock(hashtextextended('kb.lifecycle', p_document_key));
  select * into head from kb.lifecycle_head where document_key = p_document_key;
  for entry in
    select * from kb.lifecycle where document_key = p_document_key order by lifecycle_id
  loop
    update kb.lifecycle set previous_hash = last, hash = kb.lifecycle_hash(
      last, entry.version, entry.event, entry.actor, entry.details, entry.at)
    where lifecycle_id = entry.lifecycle_id returning hash into last;
  end loop;
  update kb.lifecycle_head set hash = last where document_key = p_document_key;
  insert into kb.lifecycle (scope_id, document_key, event, actor, details)
  values (head.scope_id, p_document_key, 'log_rewritten', 'kb', jsonb_build_object(
    'why', p_why, 'entries', head.entries, 'previous_head', head.hash));
end $$;
revoke all on function kb.rechain from public;

-- Every column that may name something: of all tables, those of other migrations too, but for what
-- is a document's own content and what holds one of a few fixed words.
create view kb.naming_column as
select c.oid::regclass as relation, c.relname as table_name, a.attname as column_name,
  format_type(a.atttypid, null) as type,
  case
    when exists (select from pg_attribute s where s.attrelid = c.oid and s.attname = 'scope_id'
      and not s.attisdropped) then 'scope_id = $3'
    when exists (select from pg_attribute s where s.attrelid = c.oid and s.attname = 'scope_ids'
      and not s.attisdropped) then '$3 = any (scope_ids)'
    when exists (select from pg_attribute s where s.attrelid = c.oid and s.attname = 'scope'
      and not s.attisdropped) then 'scope = (select name from kb.scope where scope_id = $3)'
    else 'true'
  end as in_scope
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = 'kb'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  and a.attgenerated = ''
  and format_type(a.atttypid, null) in ('text', 'character varying', 'text[]', 'jsonb')
  and c.relname not in ('passage', 'parsed', 'extraction', 'staged_chunk', 'staged_vector', 'lex',
    'embedding', 'term', 'lexicon', 'finding', 'model', 'scope', 'schema_migration', 'installation',
    'event')
  and a.attname not in ('scope', 'event', 'stage', 'media_type', 'language', 'mode', 'asked_mode',
    'cause', 'analyzer', 'rule_pack', 'parser')
  and not exists (select from pg_constraint f where f.conrelid = c.oid and f.contype = 'c'
    and f.conkey = array[a.attnum] and pg_get_constraintdef(f.oid) like '%ANY (ARRAY[%');

-- Rows that name `p_name` (as a whole word) by table and column; p_scope_id null: in all scopes.
create function kb.mentions(p_name text, p_scope_id int) returns jsonb
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  item kb.naming_column;
  n bigint;
  found_in jsonb := '{}';
begin
  for item in select * from kb.naming_column loop
    execute format(
      'select count(*) from %1$s where strpos(%2$I::text, $4) > 0
         and %2$I::text ~ kb.whole_word($1, $2) and ($3 is null or %3$s)',
      item.relation, item.column_name, item.in_scope)
    into n using p_name, item.type = 'jsonb', p_scope_id, kb.written(p_name, item.type = 'jsonb');
    if n > 0 then
      found_in := found_in || jsonb_build_object(item.table_name || '.' || item.column_name, n);
    end if;
  end loop;
  return found_in;
end $$;

-- A name as it stands in text, or inside a JSON string; and the pattern that finds it as a word.
create function kb.written(p_name text, p_as_json boolean) returns text
language sql immutable as $$
  select case when p_as_json then substr(to_json(p_name)::text, 2, length(to_json(p_name)::text) - 2)
    else p_name end
$$;
create function kb.whole_word(p_name text, p_as_json boolean) returns text
language sql immutable as $$
  select '(?<![[:alnum:]_-])' || regexp_replace(
    kb.written(p_name, p_as_json),
    '([].^$*+?(){}|\\[-])', '\\\1', 'g') || '(?![[:alnum:]_-])'
$$;

-- Writes `p_alias` wherever `p_name` stands; log chains that change are chained anew. Returns rows
-- by table and column. The alias must be plain ASCII letters, digits and hyphens; one table may be
-- left as it is.
create function kb.replace_everywhere(
  p_name text, p_alias text, p_scope_id int, p_why text, p_but_for text default ''
) returns jsonb language plpgsql security definer
set search_path = kb, pg_temp as $$
declare
  item kb.naming_column;
  n bigint;
  chains bigint[];
  chain bigint;
  changed jsonb := '{}';
begin
  perform set_config('kb.forgetting', 'on', true);
  select array_agg(distinct document_key) into chains from kb.lifecycle
  where (p_scope_id is null or scope_id = p_scope_id)
    and (actor ~ kb.whole_word(p_name, false) or details::text ~ kb.whole_word(p_name, true));
  for item in select * from kb.naming_column where table_name <> p_but_for loop
    execute format(
      'update %1$s set %2$I = %3$s
       where strpos(%2$I::text, $4) > 0 and %2$I::text ~ kb.whole_word($1, %4$L)
         and ($3 is null or %5$s)',
      item.relation, item.column_name,
      case item.type
        when 'jsonb' then format(
          'regexp_replace(%I::text, kb.whole_word($1, true), $2, ''g'')::jsonb', item.column_name)
        when 'text[]' then format(
          'array(select regexp_replace(x, kb.whole_word($1, false), $2, ''g'') from unnest(%I) x)',
          item.column_name)
        else format('regexp_replace(%I, kb.whole_word($1, false), $2, ''g'')', item.column_name)
      end, item.type = 'jsonb', item.in_scope)
    using p_name, p_alias, p_scope_id, kb.written(p_name, item.type = 'jsonb');
    get diagnostics n = row_count;
    if n > 0 then
      changed := changed || jsonb_build_object(item.table_name || '.' || item.column_name, n);
    end if;
  end loop;
  foreach chain in array coalesce(chains, '{}') loop
    perform kb.rechain(chain, p_why);
  end loop;
  return changed;
end $$;

-- A person's name out of every log and row; texts of documents stay as they are.
create function kb.forget_actor(p_actor text, p_alias text) returns jsonb
language sql security definer set search_path = kb, pg_temp as $$
  select kb.replace_everywhere(p_actor, p_alias, null, 'actor forgotten')
$$;

-- Erasure --------------------------------------------------------------------------------------

-- The key that turns a document's name into the digest by which its erasure is known again.
create table kb.installation (
  one   boolean primary key default true check (one),
  salt  bytea not null check (length(salt) = 32)
);
grant select, insert on kb.installation to kb_pipeline;
alter table kb.installation enable row level security;
create policy pipeline on kb.installation to kb_pipeline using (true) with check (true);

create table kb.erasure (
  erasure_id    text primary key check (erasure_id ~ '^[0-9a-f]{16}$'),
  scope_id      int not null references kb.scope,
  id_digest     text not null check (id_digest ~ '^[0-9a-f]{64}$'),
  actor         text not null check (actor <> ''),
  reason        text not null check (length(reason) between 1 and 2000),
  work          jsonb,
  counts        jsonb not null default '{}',
  remains       jsonb not null default '[]',
  started_at    timestamptz not null default clock_timestamp(),
  finished_at   timestamptz,
  readmitted_at timestamptz,
  replays       jsonb not null default '[]',
  check ((work is null) = (finished_at is not null))
);
create index erasure_digest on kb.erasure (scope_id, id_digest);
create index erasure_unfinished on kb.erasure (started_at) where finished_at is null;
comment on table kb.erasure is
  'Certificates: what an erasure deleted, by store. `work` names what is still to be deleted outside '
  'the database and is emptied with it.';
alter table kb.erasure enable row level security;
create policy pipeline on kb.erasure to kb_pipeline using (true) with check (true);
create policy reader on kb.erasure for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]));
grant select, insert on kb.erasure to kb_pipeline;
grant update (work, counts, remains, finished_at, readmitted_at, replays) on kb.erasure
  to kb_pipeline;
grant select (erasure_id, scope_id, actor, reason, counts, remains, started_at, finished_at,
  readmitted_at, replays) on kb.erasure to kb_app;

-- Deletes all rows of a document, in whatever table they are, and what other rows say of it. Its
-- own row stays as an empty one under an alias, so that sums still match. A table belongs to the
-- document if it has passage_key, version_key, document_key, or a scope with document_id; one whose
-- foreign key is set to null on deletion keeps its rows and forgets by its own trigger. The outbox
-- (kb.event) keeps the message that the document is gone until everybody was told.
create function kb.erase_document(p_document_key bigint, p_alias text, p_reason text)
returns jsonb language plpgsql security definer
set search_path = kb, pg_temp as $$
declare
  d kb.document;
  versions bigint[];
  item record;
  name text;
  n bigint;
  counts jsonb := '{}';
begin
  perform set_config('kb.deciding', 'on', true);
  perform set_config('kb.forgetting', 'on', true);
  perform pg_advisory_xact_lock(hashtextextended('kb.document', p_document_key));
  select * into d from kb.document where document_key = p_document_key for update;
  if not found then
    raise exception 'no such document' using errcode = 'KB003';
  end if;
  select coalesce(array_agg(version_key), '{}') into versions
  from kb.version where document_key = p_document_key;
  update kb.document set state = 'erased', reason = p_reason where document_key = p_document_key;

  for item in
    select distinct on (c.oid) c.oid::regclass as relation, c.relname as table_name,
      case a.attname
        when 'passage_key' then
          'passage_key in (select passage_key from kb.passage where version_key = any ($2))'
        when 'version_key' then 'version_key = any ($2)'
        when 'document_key' then 'document_key = $1'
        else 'document_id = $3 and ' || case s.attname when 'scope_id' then 'scope_id = $4'
          else 'scope = (select name from kb.scope where scope_id = $4)' end
      end as condition,
      array_position('{passage_key,version_key,document_key,document_id}'::text[],
        a.attname::text) as nth
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
      and a.attname in ('passage_key', 'version_key', 'document_key', 'document_id')
    left join pg_attribute s on s.attrelid = c.oid and not s.attisdropped
      and s.attname in ('scope_id', 'scope')
    where c.relnamespace = 'kb'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname not in ('document', 'version', 'passage', 'event')
      and (a.attname <> 'document_id' or s.attname is not null)
      and not exists (select from pg_constraint f where f.conrelid = c.oid and f.contype = 'f'
        and f.confrelid in ('kb.document'::regclass, 'kb.version'::regclass,
          'kb.passage'::regclass) and f.confdeltype = 'n')
    order by c.oid, nth
  loop
    execute format('delete from %s where %s', item.relation, item.condition)
    using p_document_key, versions, d.document_id, d.scope_id;
    get diagnostics n = row_count;
    if n > 0 then counts := counts || jsonb_build_object(item.table_name, n); end if;
  end loop;
  delete from kb.passage where version_key = any (versions);
  get diagnostics n = row_count;
  if n > 0 then counts := counts || jsonb_build_object('passage', n); end if;
  delete from kb.watch where scope_id = d.scope_id and expand = 'none'
    and url in (d.source_uri, d.origin);
  get diagnostics n = row_count;
  if n > 0 then counts := counts || jsonb_build_object('watch', n); end if;
  delete from kb.version where document_key = p_document_key;
  get diagnostics n = row_count;
  counts := counts || jsonb_build_object('version', n, 'document', 1);

  update kb.document set document_id = p_alias, source_kind = 'api', source_uri = '', origin = '',
    title = null, audiences = '{}', audiences_set_by = null, trusted_by = null,
    language_hint = null, requested_valid_from = null, supersedes = '{}', duplicate_of = null,
    latest_version = null, attempts = 0, settled_fingerprint = null, updated_at = now()
  where document_key = p_document_key;
  -- Another document may come from the same place; then that is its own affair.
  foreach name in array array[d.document_id, d.source_uri, d.origin] loop
    continue when length(name) < 4 and name <> d.document_id;
    counts := counts || (select coalesce(jsonb_object_agg('named in ' || key, value), '{}')
      from jsonb_each(kb.replace_everywhere(name, p_alias, d.scope_id, 'document erased',
        case when name = d.document_id then '' else 'document' end)));
  end loop;
  perform kb.refresh_statistics(d.scope_id)
  where exists (select from kb.lexicon where scope_id = d.scope_id);
  return counts;
end $$;

revoke all on function kb.mentions, kb.replace_everywhere, kb.forget_actor, kb.erase_document
  from public;
grant execute on function kb.mentions, kb.forget_actor, kb.erase_document to kb_pipeline;
grant select on kb.naming_column to kb_pipeline;

-- Documents that only holders of an audience can read, for erasing what belongs to one person.
create function kb.held_only_by(p_scope_id int, p_audience text)
returns table (document_id text) language sql stable as $$
  select d.document_id from kb.document d
  where d.scope_id = p_scope_id and d.audiences = array[p_audience] and d.state <> 'erased'
  order by d.document_key
$$;

-- A source that comes back by itself after its document was erased stays out until somebody
-- restores it.
create function kb.keep_out(p_scope_id int, p_document_id text, p_reason text) returns boolean
language plpgsql as $$
begin
  update kb.document set state = 'erased', reason = p_reason, updated_at = now()
  where scope_id = p_scope_id and document_id = p_document_id and state = 'pending'
    and latest_version is null;
  return found;
end $$;
