-- The outbox of what became searchable or ceased to be, the log of scopes, the list of embedding
-- work, publishing before all vectors are there, and publishing thousands of chunks.

-- Outbox -----------------------------------------------------------------------------------------
-- An event is written in the transaction that changes the index, once for each consumer that
-- exists then, and stays until that consumer acknowledges it. Rows instead of a cursor: a
-- cursor over numbers skips transactions that commit late, and one over transaction ids does not
-- survive a restore.

create table kb.consumer (
  consumer_id   int generated always as identity primary key,
  name          text not null check (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
  scope_id      int references kb.scope on delete cascade,
  created_at    timestamptz not null default now(),
  unique nulls not distinct (name, scope_id)
);
comment on table kb.consumer is
  'Who is told of changes of the index: of one scope, or of all where scope_id is null.';

create table kb.event (
  event_no      bigint generated always as identity primary key,
  event_id      uuid not null unique default gen_random_uuid(),
  scope_id      int not null references kb.scope on delete cascade,
  document_id   text not null,
  version       int,
  kind          text not null check (kind in ('upsert', 'delete')),
  at            timestamptz not null default clock_timestamp(),
  xact          xid8 not null default pg_current_xact_id(),
  started       timestamptz not null default now(),
  unique (scope_id, document_id, xact, started),
  check ((kind = 'upsert') = (version is not null))
);
create index event_at on kb.event (at);
comment on table kb.event is
  'One row per document and transaction: upsert names the version that is found now.';

create table kb.delivery (
  consumer_id   int not null references kb.consumer on delete cascade,
  event_no      bigint not null references kb.event on delete cascade,
  attempts      int not null default 0,
  error         text not null default '' check (length(error) <= 2000),
  primary key (consumer_id, event_no)
);
create index delivery_event on kb.delivery (event_no);
comment on table kb.delivery is 'Events that a consumer has not acknowledged yet.';

-- The version that search finds now or will, null where none.
create function kb.published_version(p_document_key bigint) returns int
language sql stable as $$
  select v.version from kb.validity x join kb.version v using (version_key)
  where x.document_key = p_document_key and upper_inf(x.known) and upper_inf(x.valid)
    and exists (select from kb.passage p where p.version_key = v.version_key)
  limit 1
$$;

create function kb.write_event(
  p_scope_id int, p_document_id text, p_version int
) returns void language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  made bigint;
begin
  insert into kb.event (scope_id, document_id, version, kind)
  values (p_scope_id, p_document_id, p_version,
    case when p_version is null then 'delete' else 'upsert' end)
  on conflict (scope_id, document_id, xact, started)
    do update set kind = excluded.kind, version = excluded.version
  returning event_no into made;
  insert into kb.delivery (consumer_id, event_no)
  select consumer_id, made from kb.consumer where scope_id is null or scope_id = p_scope_id
  on conflict do nothing;
end $$;
revoke all on function kb.write_event from public;

-- The last word of a transaction counts: each change of a document states anew what it led to.
create function kb.announce(p_document_key bigint) returns void
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  d kb.document;
begin
  select * into d from kb.document where document_key = p_document_key;
  if found and exists (select from kb.consumer
    where scope_id is null or scope_id = d.scope_id)
  then
    perform kb.write_event(d.scope_id, d.document_id, kb.published_version(p_document_key));
  end if;
end $$;
revoke all on function kb.announce from public;

create function kb.announce_passages() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  if exists (select from kb.consumer) then
    perform kb.announce(v.document_key) from (
      select distinct document_key from kb.version
      where version_key in (select version_key from changed)) v;
  end if;
  return null;
end $$;
create trigger announce_new after insert on kb.passage referencing new table as changed
  for each statement execute function kb.announce_passages();
create trigger announce_gone after delete on kb.passage referencing old table as changed
  for each statement execute function kb.announce_passages();

create function kb.announce_validity() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  perform kb.announce(case when tg_op = 'DELETE' then old.document_key else new.document_key end);
  return null;
end $$;
create trigger announce after insert or update or delete on kb.validity
  for each row execute function kb.announce_validity();

create function kb.announce_audiences() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  if kb.published_version(new.document_key) is not null then
    perform kb.announce(new.document_key);
  end if;
  return null;
end $$;
create trigger announce_audiences after update of audiences on kb.document for each row
  when (old.audiences is distinct from new.audiences) execute function kb.announce_audiences();

create function kb.announce_erasure() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  if exists (select from kb.consumer where scope_id is null or scope_id = old.scope_id)
    and exists (select from kb.version where document_key = old.document_key)
  then
    perform kb.write_event(old.scope_id, old.document_id, null);
  end if;
  return old;
end $$;
create trigger announce_erasure before delete on kb.document
  for each row execute function kb.announce_erasure();

-- Scopes -----------------------------------------------------------------------------------------

create table kb.scope_log (
  entry_no      bigint generated always as identity primary key,
  scope_id      int not null references kb.scope on delete cascade,
  event         text not null check (event in
    ('created', 'settings', 'renamed', 'closed', 'reopened', 'expired')),
  actor         text not null check (actor <> ''),
  details       jsonb not null default '{}',
  at            timestamptz not null default clock_timestamp()
);
create index scope_log_scope on kb.scope_log (scope_id, entry_no);
comment on table kb.scope_log is 'Who changed what about a scope; append-only.';
create trigger scope_log_append_only before update or delete on kb.scope_log
  for each row execute function kb.refuse_change();

-- Embedding work ---------------------------------------------------------------------------------
-- A published document whose vectors are not all there is found by its words and waits here.
-- No row: ready.

create table kb.embed_work (
  document_key  bigint not null references kb.document on delete cascade,
  model_key     int not null references kb.model,
  scope_id      int not null references kb.scope,
  state         text not null default 'pending' check (state in ('pending', 'processing', 'failed')),
  attempts      int not null default 0 check (attempts >= 0),
  error         text not null default '' check (length(error) <= 2000),
  holder        text,
  held_until    timestamptz,
  primary key (document_key, model_key),
  check ((state = 'processing') = (holder is not null and held_until is not null)),
  check (state <> 'failed' or error <> '')
) with (fillfactor = 80);
create index embed_work_state on kb.embed_work (scope_id, model_key, state);

create function kb.embed_work_transition() returns trigger language plpgsql as $$
begin
  if not (old.state, new.state) in (('pending', 'processing'), ('processing', 'pending'),
    ('processing', 'failed'), ('failed', 'pending'))
  then
    raise exception 'embedding work does not go from % to %', old.state, new.state
      using errcode = 'KB006', hint = 'Claim it first; put failed work back with requeue.';
  end if;
  return new;
end $$;
create trigger transition before update of state on kb.embed_work for each row
  when (old.state is distinct from new.state) execute function kb.embed_work_transition();

-- Vectors of published passages from those staged for the version; what is not staged still waits.
-- Returns how many passages have no vector by the model yet.
create function kb.attach_vectors(p_version_key bigint, p_model_key int) returns int
language plpgsql as $$
declare
  waiting int;
begin
  insert into kb.embedding (model_key, passage_key, scope_id, valid_from, valid_until, earlier,
    audiences, vec)
  select p_model_key, p.passage_key, l.scope_id, l.valid_from, l.valid_until, l.earlier,
    l.audiences, s.vec
  from kb.passage p
  join kb.lex l using (passage_key)
  cross join lateral (select x.vec from kb.staged_vector x
    where x.version_key = p_version_key and x.model_key = p_model_key
      and x.embed_hash = p.embed_hash limit 1) s
  where p.version_key = p_version_key and not exists (select from kb.embedding e
    where e.model_key = p_model_key and e.passage_key = p.passage_key offset 0);
  delete from kb.staged_vector where version_key = p_version_key and model_key = p_model_key;
  select count(*) into waiting from kb.passage p
  where p.version_key = p_version_key and not exists (select from kb.embedding e
    where e.model_key = p_model_key and e.passage_key = p.passage_key offset 0);
  return waiting;
end $$;

-- As in 0002, but vectors are looked up by their key, one by one (`offset 0` and `limit 1` keep the
-- planner from joining): tables that nobody analysed since they were filled look nearly empty to
-- it, and it compared every chunk with every vector. 10,000 chunks: minutes, now a second.
create or replace function kb.put_version(
  p_version_key bigint, p_valid_from timestamptz, p_audiences text[], p_model_key int,
  p_analyzer text, p_average_length real, p_ordinals int[], p_bm text[], p_lexemes text[],
  out state text, out passages int, out carried int
) language plpgsql as $$
declare
  v kb.version;
  kept boolean;
  was_current boolean;
  had_rows boolean;
  lexical_changed boolean;
  held_by text[];
  span record;
begin
  select * into v from kb.version where version_key = p_version_key;
  if not found then
    raise exception 'no such version' using errcode = 'KB003';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('kb.document', v.document_key));
  perform pg_advisory_xact_lock_shared(hashtextextended('kb.lexicon', v.scope_id));
  perform kb.require_cleared(p_version_key);
  select * into v from kb.version where version_key = p_version_key;

  select count(*) into passages from kb.staged_chunk where version_key = p_version_key;
  had_rows := exists (select 1 from kb.passage where version_key = p_version_key);
  if passages = 0 and not had_rows then
    raise exception 'version % has no staged chunks', p_version_key
      using errcode = 'KB004', hint = 'Run the chunk stage for it first.';
  end if;
  kept := had_rows and (passages = 0 or kb.staged_as_published(p_version_key));
  if passages > 0 and (passages <> cardinality(p_ordinals) or exists (
    select c.ordinal from kb.staged_chunk c where c.version_key = p_version_key
    except select o from unnest(p_ordinals) o)) then
    raise exception 'the lexical rows do not fit the staged chunks of version %', p_version_key
      using errcode = 'KB004', hint = 'Run the index stage for it again.';
  end if;
  if p_model_key is not null and exists (
    select 1 from (
      select embed_hash from kb.staged_chunk where version_key = p_version_key and not kept
      union all
      select p.embed_hash from kb.passage p
      where p.version_key = p_version_key and kept and not exists (select 1 from kb.embedding e
        where e.model_key = p_model_key and e.passage_key = p.passage_key offset 0)) needed
    where not exists (select 1 from kb.staged_vector s where s.version_key = p_version_key
      and s.model_key = p_model_key and s.embed_hash = needed.embed_hash offset 0)
  ) then
    raise exception 'version % has chunks without a vector', p_version_key
      using errcode = 'KB004', hint = 'Run the embed stage for it first.';
  end if;

  insert into kb.lexicon (scope_id, analyzer, average_length)
  values (v.scope_id, p_analyzer, p_average_length) on conflict do nothing;
  if (select analyzer from kb.lexicon where scope_id = v.scope_id) <> p_analyzer then
    raise exception 'the scope was indexed with another analyzer'
      using errcode = 'KB004', hint = 'Rebuild the scope''s lexical rows.';
  end if;

  held_by := kb.set_audiences(v.document_key, p_audiences);
  was_current := exists (select 1 from kb.validity where version_key = p_version_key
    and upper_inf(known) and upper_inf(valid));
  if was_current then
    state := 'unchanged';
  else
    state := case
      when exists (select 1 from kb.validity where version_key = p_version_key) then 'reinstated'
      when exists (select 1 from kb.validity where document_key = v.document_key
        and upper_inf(known) and upper_inf(valid)) then 'replaced'
      else 'new' end;
    perform kb.open_validity(p_version_key, coalesce(p_valid_from, clock_timestamp()));
  end if;
  select * into span from kb.version_intervals(p_version_key);

  if not kept then
    if had_rows then
      delete from kb.passage where version_key = p_version_key;
    end if;
    insert into kb.passage (version_key, scope_id, passage_id, ordinal, text, context,
      heading_path, page, locator, byte_start, byte_end, char_start, char_end, content_hash,
      embed_hash, token_count, language)
    select c.version_key, v.scope_id, c.passage_id, c.ordinal,
      convert_from(substring(b.body from c.byte_start + 1 for c.byte_end - c.byte_start), 'UTF8'),
      c.context, c.heading_path, c.page, c.locator, c.byte_start, c.byte_end, c.char_start,
      c.char_end, c.content_hash, c.embed_hash, c.token_count, coalesce(v.language, 'und')
    from (select convert_to(body, 'UTF8') as body from kb.parsed
      where version_key = p_version_key offset 0) b, kb.staged_chunk c
    where c.version_key = p_version_key;
    if was_current then state := 'rebuilt'; end if;
  end if;

  if cardinality(p_ordinals) > 0 then
    with given as (
      select u.ordinal, u.bm::sparsevec as bm
      from unnest(p_ordinals, p_bm) u (ordinal, bm)
    )
    delete from kb.lex l using kb.passage p, given g
    where p.version_key = p_version_key and l.passage_key = p.passage_key
      and g.ordinal = p.ordinal and l.bm <> g.bm;
    with given as (
      select u.ordinal, u.bm::sparsevec as bm, u.lexemes::int[] as lexemes
      from unnest(p_ordinals, p_bm, p_lexemes) u (ordinal, bm, lexemes)
    )
    insert into kb.lex (passage_key, scope_id, valid_from, valid_until, earlier, audiences, bm,
      keys)
    select p.passage_key, v.scope_id, span.valid_from, span.valid_until, span.earlier, held_by,
      g.bm, array(select kb.scoped_key(v.scope_id, x) from unnest(g.lexemes) x)
    from kb.passage p join given g using (ordinal)
    where p.version_key = p_version_key
      and not exists (select 1 from kb.lex l where l.passage_key = p.passage_key);
    lexical_changed := found;
    if kept and was_current and lexical_changed then state := 'rebuilt'; end if;
  end if;

  select count(*) filter (where s.carried) into carried
  from kb.staged_chunk c
  cross join lateral (select x.carried from kb.staged_vector x
    where x.version_key = p_version_key and x.model_key = p_model_key
      and x.embed_hash = c.embed_hash limit 1) s
  where c.version_key = p_version_key and not kept;
  if p_model_key is not null then
    insert into kb.embedding (model_key, passage_key, scope_id, valid_from, valid_until, earlier,
      audiences, vec)
    select p_model_key, p.passage_key, v.scope_id, span.valid_from, span.valid_until,
      span.earlier, held_by, s.vec
    from kb.passage p
    cross join lateral (select x.vec from kb.staged_vector x
      where x.version_key = p_version_key and x.model_key = p_model_key
        and x.embed_hash = p.embed_hash limit 1) s
    where p.version_key = p_version_key and not exists (select 1 from kb.embedding e
      where e.model_key = p_model_key and e.passage_key = p.passage_key offset 0);
  end if;

  if not was_current and (kept or exists (select 1 from kb.validity
      where document_key = v.document_key and version_key <> p_version_key)) then
    perform kb.sync_validity(v.document_key);
  end if;
  delete from kb.staged_chunk where version_key = p_version_key;
  delete from kb.staged_vector where version_key = p_version_key;
  select count(*) into passages from kb.passage where version_key = p_version_key;
  if kept and carried = 0 then carried := passages; end if;
  if not kept then
    update kb.lexicon set passages = lexicon.passages + put_version.passages
    where scope_id = v.scope_id;
  end if;
end $$;

-- kb.put_version for a version whose vectors need not all be there: those that are staged are
-- published with it, the rest waits. Everything else is as there.
create function kb.publish(
  p_version_key bigint, p_valid_from timestamptz, p_audiences text[], p_model_key int,
  p_analyzer text, p_average_length real, p_ordinals int[], p_bm text[], p_lexemes text[],
  out state text, out passages int, out carried int, out waiting int
) language plpgsql as $$
declare
  hashes text[];
  vecs halfvec[];
  missing boolean;
begin
  missing := exists (
    select from kb.staged_chunk c where c.version_key = p_version_key and not exists (
      select from kb.staged_vector s where s.version_key = p_version_key
        and s.model_key = p_model_key and s.embed_hash = c.embed_hash offset 0));
  if missing then
    select array_agg(embed_hash), array_agg(vec) into hashes, vecs from kb.staged_vector
    where version_key = p_version_key and model_key = p_model_key;
  end if;
  select r.state, r.passages, r.carried into state, passages, carried
  from kb.put_version(p_version_key, p_valid_from, p_audiences,
    case when missing then null else p_model_key end, p_analyzer, p_average_length, p_ordinals,
    p_bm, p_lexemes) r;
  waiting := 0;
  if missing then
    insert into kb.staged_vector (version_key, model_key, embed_hash, carried, vec)
    select p_version_key, p_model_key, u.embed_hash, true, u.vec
    from unnest(hashes, vecs) u (embed_hash, vec);
    waiting := kb.attach_vectors(p_version_key, p_model_key);
    carried := passages - waiting;
  end if;
end $$;

-- Rights -----------------------------------------------------------------------------------------

grant select, insert, delete on kb.consumer to kb_pipeline;
grant select, delete on kb.event to kb_pipeline;
grant select, insert, delete on kb.delivery to kb_pipeline;
grant update (attempts, error) on kb.delivery to kb_pipeline;
grant select, insert on kb.scope_log to kb_pipeline;
grant select, insert, update, delete on kb.embed_work to kb_pipeline;
grant select on kb.embed_work, kb.scope_log to kb_app;

do $$
declare
  table_name text;
begin
  foreach table_name in array array['consumer', 'event', 'delivery', 'scope_log', 'embed_work']
  loop
    execute format('alter table kb.%I enable row level security', table_name);
    execute format(
      'create policy pipeline on kb.%I to kb_pipeline using (true) with check (true)', table_name);
  end loop;
  foreach table_name in array array['scope_log', 'embed_work'] loop
    execute format('create policy reader on kb.%I for select to kb_app
      using (scope_id = any ((select kb.allowed_scope_ids())::int[]))', table_name);
  end loop;
end $$;
