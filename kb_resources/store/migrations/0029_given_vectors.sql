-- Who publishes in one transaction gives vectors along, as lexical rows are given: ten thousand of
-- them went through a table, its key and its checks, to be read, deleted and checked again.

-- As in 0027; p_given are ordinals of chunks, p_vectors their vectors. One that is staged, or there,
-- comes first. The triggers of kb.embedding ask the same of each, wherever it comes from.
drop function kb.put_version(bigint, timestamptz, text[], int, text, real, int[], sparsevec[],
  int[], int[], boolean);
create function kb.put_version(
  p_version_key bigint, p_valid_from timestamptz, p_audiences text[], p_model_key int,
  p_analyzer text, p_average_length real, p_ordinals int[], p_bm sparsevec[], p_ends int[],
  p_keys int[], p_partial boolean default false, p_given int[] default null,
  p_vectors halfvec[] default null, out state text, out passages int, out carried int,
  out waiting int
) language plpgsql as $$
declare
  v kb.version;
  kept boolean;
  was_current boolean;
  had_rows boolean;
  held_by text[];
  span record;
  staged boolean;
  added int := 0;
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
    staged := exists (select from kb.staged_vector
      where version_key = p_version_key and model_key = p_model_key);
    if staged then
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
    if cardinality(p_given) > 0 then
      insert into kb.embedding (model_key, passage_key, scope_id, valid_from, valid_until, earlier,
        audiences, vec)
      select p_model_key, p.passage_key, v.scope_id, span.valid_from, span.valid_until,
        span.earlier, held_by, g.vec
      from kb.passage p join unnest(p_given, p_vectors) g (ordinal, vec) using (ordinal)
      where p.version_key = p_version_key and (not (kept or staged)
        or not exists (select 1 from kb.embedding e
          where e.model_key = p_model_key and e.passage_key = p.passage_key offset 0));
      get diagnostics added = row_count;
      embedded := embedded + added;
    end if;
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

-- The different headings of ten thousand rows are found by their hashes, not by sorting the rows:
-- one version's rows are taken to be few of those inserted, and a few would be sorted.
alter function kb.gate_passage() set enable_sort = off;
