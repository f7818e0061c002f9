-- Publishing with fewer looks at each row: what 0022 left are keys asked row by row, and the same
-- ten thousand rows read for one question after the other.

-- Keys of (version, passage), asked and followed by statement ------------------------------------
-- As the foreign keys did it: no row without what it belongs to, whoever deletes that deletes them
-- too, and who deletes and who inserts wait for each other. Locks are on the version, one for all
-- its rows: inserting holds it shared to the end of the transaction, deleting its passages needs it.

alter table kb.passage drop constraint passage_version_key_fkey;
alter table kb.staged_chunk drop constraint staged_chunk_version_key_fkey;
alter table kb.staged_vector drop constraint staged_vector_version_key_fkey;
alter table kb.lex drop constraint lex_passage_key_fkey;
alter table kb.embedding drop constraint embedding_passage_key_fkey;
revoke update on kb.staged_chunk from kb_pipeline;
-- kb.passage has this key too.
alter table kb.staged_chunk drop constraint staged_chunk_version_key_passage_id_key;

-- The settings keep a plan that was made for thousands of rows from reading a whole table for one.
create function kb.has_version() returns trigger
language plpgsql security definer set search_path = kb, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  if (select count(*) from (select from kb.version
      where version_key in (select version_key from new_rows) for key share) held)
    <> (select count(distinct version_key) from new_rows)
  then
    raise exception 'rows were staged for a version that is not there' using errcode = '23503';
  end if;
  return null;
end $$;
create trigger has_version after insert on kb.staged_chunk referencing new table as new_rows
  for each statement execute function kb.has_version();
create trigger has_version after insert on kb.staged_vector referencing new table as new_rows
  for each statement execute function kb.has_version();

create function kb.drop_rows_of_version() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  delete from kb.passage where version_key = old.version_key;
  delete from kb.staged_chunk where version_key = old.version_key;
  delete from kb.staged_vector where version_key = old.version_key;
  return null;
end $$;
create trigger rows_gone after delete on kb.version for each row
  execute function kb.drop_rows_of_version();

create function kb.drop_search_rows() returns trigger
language plpgsql security definer set search_path = kb, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  perform from kb.version where version_key in (select version_key from gone) for no key update;
  delete from kb.lex where passage_key in (select passage_key from gone);
  delete from kb.embedding where passage_key in (select passage_key from gone);
  return null;
end $$;
create trigger search_rows_gone after delete on kb.passage referencing old table as gone
  for each statement execute function kb.drop_search_rows();

-- Gates ------------------------------------------------------------------------------------------

-- The gate of 0022, rule for rule, with one look at each passage for what is asked of it alone; and
-- a passage has a version.
create or replace function kb.gate_passage() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  published record;
  body bytea;
  wrong record;
begin
  for published in
    select n.version_key, v.version_key is null as unknown, v.scope_id, v.verdict_body_digest,
      v.title
    from (select distinct version_key from new_rows) n left join kb.version v using (version_key)
  loop
    if published.unknown then
      raise exception 'there is no version %', published.version_key using errcode = '23503';
    end if;
    perform kb.require_cleared(published.version_key);
    select convert_to(p.body, 'UTF8') into body from kb.parsed p
    where p.version_key = published.version_key;
    if encode(sha256(body), 'hex') is distinct from published.verdict_body_digest then
      raise exception 'the stored body of version % is not the one that was cleared',
        published.version_key
        using errcode = 'KB001', hint = 'Run the stages from parse on for it again.';
    end if;
    select bool_or(n.scope_id <> published.scope_id
        or convert_to(n.text, 'UTF8')
          is distinct from substring(body from n.byte_start + 1 for n.byte_end - n.byte_start))
        as slice,
      bool_or(length(n.passage_id) > 200 or n.passage_id !~ '^[A-Za-z0-9][A-Za-z0-9._:#-]*$')
        as id,
      count(n.locator) > 0 as located
    into wrong from new_rows n where n.version_key = published.version_key;
    if wrong.slice then
      raise exception 'a passage of version % is not a slice of its cleared body',
        published.version_key
        using errcode = 'KB001', hint = 'Run the chunk stage for it again.';
    end if;
    if wrong.id or exists (
      select h.value from (
        select distinct n.heading_path from new_rows n
        where n.version_key = published.version_key) path
      cross join lateral unnest(path.heading_path) h (value)
      except (
        select published.title
        union all
        select h.value from kb.parsed p
        cross join lateral jsonb_array_elements(p.blocks) b
        cross join lateral jsonb_array_elements_text(b.value -> 'path') h
        where p.version_key = published.version_key)
    ) or wrong.located and exists (
      select n.locator from new_rows n
      where n.version_key = published.version_key and n.locator is not null
      except
      select b.value ->> 'locator' from kb.parsed p
      cross join lateral jsonb_array_elements(p.blocks) b
      where p.version_key = published.version_key
    ) then
      raise exception 'a passage of version % has headings, a locator or an id that its cleared '
        'blocks do not give', published.version_key
        using errcode = 'KB001', hint = 'Run the chunk stage for it again.';
    end if;
  end loop;
  return null;
end $$;

-- As in 0002, for the groups of rows that share version, scope and audiences; and a search row has
-- a passage. The lock comes before the look, so that passages deleted meanwhile are seen to be gone.
create or replace function kb.gate_search_row() returns trigger
language plpgsql security definer set search_path = kb, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  first bigint;
  several boolean := false;
  seen record;
begin
  select p.version_key into first from kb.passage p
  where p.passage_key = (select passage_key from new_rows limit 1);
  if found then perform kb.require_cleared(first); end if;
  for seen in
    select p.version_key, n.scope_id, p.scope_id as of_passage, n.audiences
    from new_rows n left join kb.passage p using (passage_key)
    group by p.version_key, n.scope_id, p.scope_id, n.audiences
  loop
    if seen.version_key is distinct from first then
      several := true;
      if seen.version_key is not null then perform kb.require_cleared(seen.version_key); end if;
    end if;
    if seen.scope_id is distinct from seen.of_passage or seen.audiences is distinct from (
      select d.audiences from kb.version v join kb.document d using (document_key)
      where v.version_key = seen.version_key)
    then
      raise exception 'a search row differs from its passage in scope or audiences'
        using errcode = 'KB001', hint = 'Publish through kb.put_version.';
    end if;
  end loop;
  -- Of several versions the others were locked after the look.
  if several and exists (select from new_rows n
    where not exists (select from kb.passage p where p.passage_key = n.passage_key offset 0))
  then
    raise exception 'a search row has no passage'
      using errcode = 'KB001', hint = 'Publish through kb.put_version.';
  end if;
  return null;
end $$;

-- As in 0022, for the different pairs of model and dimensions.
create or replace function kb.gate_dimensions() returns trigger language plpgsql as $$
begin
  -- The lock holds the models, as a foreign key's would: who deletes one waits, then finds these.
  if exists (
    select from (select distinct model_key, kb.dimensions(vec) as dim from new_rows) n
    left join (select model_key, dim from kb.model
      where model_key in (select model_key from new_rows) for key share) m using (model_key)
    where n.dim is distinct from m.dim
  ) then
    raise exception 'a vector has another number of dimensions than its model'
      using errcode = 'KB007', hint = 'Embed with the model that is named.';
  end if;
  return null;
end $$;

-- Publishing -------------------------------------------------------------------------------------

-- As in 0022 for what it does, in one function for both ways: with p_partial what has no vector
-- waits for it (kb.publish of before). Rows of a version that had none are new: they are not looked
-- for first, and what was inserted is counted instead of what would be missing.
drop function kb.publish(bigint, timestamptz, text[], int, text, real, int[], sparsevec[], int[],
  int[]);
drop function kb.put_version(bigint, timestamptz, text[], int, text, real, int[], sparsevec[],
  int[], int[]);
create function kb.put_version(
  p_version_key bigint, p_valid_from timestamptz, p_audiences text[], p_model_key int,
  p_analyzer text, p_average_length real, p_ordinals int[], p_bm sparsevec[], p_ends int[],
  p_keys int[], p_partial boolean default false, out state text, out passages int,
  out carried int, out waiting int
) language plpgsql as $$
declare
  v kb.version;
  kept boolean;
  was_current boolean;
  had_rows boolean;
  held_by text[];
  span record;
  embedded int := 0;
begin
  select * into v from kb.version where version_key = p_version_key;
  if not found then
    raise exception 'no such version' using errcode = 'KB003';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('kb.document', v.document_key)),
    pg_advisory_xact_lock_shared(hashtextextended('kb.lexicon', v.scope_id)),
    kb.require_cleared(p_version_key);
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

  insert into kb.lexicon (scope_id, analyzer, average_length)
  values (v.scope_id, p_analyzer, p_average_length) on conflict do nothing;
  if (select analyzer from kb.lexicon where scope_id = v.scope_id) <> p_analyzer then
    raise exception 'the scope was indexed with another analyzer'
      using errcode = 'KB004', hint = 'Rebuild the scope''s lexical rows.';
  end if;

  held_by := kb.set_audiences(v.document_key, p_audiences);
  select bool_or(version_key = p_version_key and upper_inf(known) and upper_inf(valid)),
    case when bool_or(version_key = p_version_key) then 'reinstated'
      when bool_or(upper_inf(known) and upper_inf(valid)) then 'replaced' end
  into was_current, state from kb.validity where document_key = v.document_key;
  if was_current then
    state := 'unchanged';
  else
    was_current := false;
    state := coalesce(state, 'new');
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
    if kept then
      delete from kb.lex l using kb.passage p, unnest(p_ordinals, p_bm) g (ordinal, bm)
      where p.version_key = p_version_key and l.passage_key = p.passage_key
        and g.ordinal = p.ordinal and l.bm <> g.bm;
    end if;
    insert into kb.lex (passage_key, scope_id, valid_from, valid_until, earlier, audiences, bm,
      keys)
    select p.passage_key, v.scope_id, span.valid_from, span.valid_until, span.earlier, held_by,
      g.bm, p_keys[coalesce(p_ends[g.nth - 1], 0) + 1 : p_ends[g.nth]]
    from kb.passage p
    join unnest(p_ordinals, p_bm) with ordinality g (ordinal, bm, nth) using (ordinal)
    where p.version_key = p_version_key and (not kept
      or not exists (select 1 from kb.lex l where l.passage_key = p.passage_key offset 0));
    if kept and was_current and found then state := 'rebuilt'; end if;
  end if;

  carried := 0;
  if p_model_key is not null then
    if not kept and exists (select from kb.staged_vector
      where version_key = p_version_key and model_key = p_model_key and staged_vector.carried)
    then
      select count(*) into carried from kb.staged_chunk c
      where c.version_key = p_version_key and (select s.carried from kb.staged_vector s
        where s.version_key = p_version_key and s.model_key = p_model_key
          and s.embed_hash = c.embed_hash);
    end if;
    insert into kb.embedding (model_key, passage_key, scope_id, valid_from, valid_until, earlier,
      audiences, vec)
    select p_model_key, p.passage_key, v.scope_id, span.valid_from, span.valid_until,
      span.earlier, held_by, s.vec
    from kb.passage p
    cross join lateral (select x.vec from kb.staged_vector x
      where x.version_key = p_version_key and x.model_key = p_model_key
        and x.embed_hash = p.embed_hash limit 1) s
    where p.version_key = p_version_key and (not kept
      or not exists (select 1 from kb.embedding e
        where e.model_key = p_model_key and e.passage_key = p.passage_key offset 0));
    get diagnostics embedded = row_count;
  end if;

  if not was_current and (kept or exists (select 1 from kb.validity
      where document_key = v.document_key and version_key <> p_version_key)) then
    perform kb.sync_validity(v.document_key);
  end if;
  delete from kb.staged_chunk where version_key = p_version_key;
  delete from kb.staged_vector where version_key = p_version_key;
  if kept then
    select count(*) into passages from kb.passage where version_key = p_version_key;
    carried := passages;
  else
    update kb.lexicon set passages = lexicon.passages + put_version.passages
    where scope_id = v.scope_id;
  end if;
  waiting := 0;
  if p_model_key is not null and embedded < passages then
    waiting := case when kept then (select count(*) from kb.passage p
      where p.version_key = p_version_key and not exists (select from kb.embedding e
        where e.model_key = p_model_key and e.passage_key = p.passage_key offset 0))
      else passages - embedded end;
  end if;
  if waiting > 0 then
    if not p_partial then
      raise exception 'version % has chunks without a vector', p_version_key
        using errcode = 'KB004', hint = 'Run the embed stage for it first.';
    end if;
    carried := passages - waiting;
  end if;
end $$;

-- As in 0022, but keys are taken out of the rows without a scan of a function for each, only terms
-- whose number changed are written, and those in the order of their index. Without nested loops: a
-- plan made when a scope was small compared every term with every other.
create or replace function kb.refresh_statistics(p_scope_id int) returns bigint
language plpgsql set enable_nestloop = off as $$
declare
  live bigint;
  lexemes int[];
  dfs int[];
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.statistics', p_scope_id));
  select array_agg(c.lexeme), array_agg(c.df) into lexemes, dfs from (
    select kb.scoped_key(p_scope_id, k.key) as lexeme, count(*) as df
    from (select unnest(l.keys) as key from kb.lex l where l.scope_id = p_scope_id
      and (l.valid_until is null or l.valid_until > now())) k
    group by k.key order by lexeme) c;
  delete from kb.term t where t.scope_id = p_scope_id and not exists (
    select from unnest(lexemes, dfs) c (lexeme, df) where c.lexeme = t.lexeme and c.df = t.df);
  insert into kb.term (scope_id, lexeme, df)
  select p_scope_id, c.lexeme, c.df from unnest(lexemes, dfs) c (lexeme, df)
  where not exists (select from kb.term t where t.scope_id = p_scope_id and t.lexeme = c.lexeme)
  order by c.lexeme;
  select count(*) into live from kb.lex
  where scope_id = p_scope_id and (valid_until is null or valid_until > now());
  update kb.lexicon set passages = live, counted = live, counted_at = now()
  where scope_id = p_scope_id;
  return live;
end $$;
