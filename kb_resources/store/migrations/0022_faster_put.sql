-- Publishing thousands of passages in less time, with the guarantees of before: lexical rows come
-- ready to store, the gate compares sets instead of each passage with each heading, and what the
-- gate or another foreign key asks already is asked once.

-- Lexical rows come as values, not as literals to be parsed: one `sparsevec` a chunk, and the keys
-- (kb.scoped_key of each lexeme) of all chunks in one array, of which chunk n has p_ends[n - 1] + 1
-- to p_ends[n]. Otherwise as in 0010; a version without passages is not searched for old rows.
drop function kb.put_version(bigint, timestamptz, text[], int, text, real, int[], text[], text[]);
create function kb.put_version(
  p_version_key bigint, p_valid_from timestamptz, p_audiences text[], p_model_key int,
  p_analyzer text, p_average_length real, p_ordinals int[], p_bm sparsevec[], p_ends int[],
  p_keys int[], out state text, out passages int, out carried int
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

-- As in 0010, with lexical rows as above.
drop function kb.publish(bigint, timestamptz, text[], int, text, real, int[], text[], text[]);
create function kb.publish(
  p_version_key bigint, p_valid_from timestamptz, p_audiences text[], p_model_key int,
  p_analyzer text, p_average_length real, p_ordinals int[], p_bm sparsevec[], p_ends int[],
  p_keys int[], out state text, out passages int, out carried int, out waiting int
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
    p_bm, p_ends, p_keys) r;
  waiting := 0;
  if missing then
    insert into kb.staged_vector (version_key, model_key, embed_hash, carried, vec)
    select p_version_key, p_model_key, u.embed_hash, true, u.vec
    from unnest(hashes, vecs) u (embed_hash, vec);
    waiting := kb.attach_vectors(p_version_key, p_model_key);
    carried := passages - waiting;
  end if;
end $$;

-- As in 0020, with lexical rows as above.
drop function kb.put_generations(bigint, timestamptz, text[], int, text, real, int[], text[], text[]);
create function kb.put_generations(
  p_version_key bigint, p_valid_from timestamptz, p_audiences text[], p_model_key int,
  p_analyzer text, p_average_length real, p_ordinals int[], p_bm sparsevec[], p_ends int[],
  p_keys int[], out state text, out passages int, out carried int
) language plpgsql as $$
declare
  live int;
  beside int;
  hashes text[];
  vecs halfvec[];
begin
  select g.live_key, g.beside_key into live, beside from kb.version v join kb.generation g using (scope_id)
  where v.version_key = p_version_key and g.beside_key is not null for share of g;
  if beside is not null then
    p_model_key := case when p_model_key = beside then live else p_model_key end;
    select array_agg(embed_hash), array_agg(vec) into hashes, vecs from kb.staged_vector
    where version_key = p_version_key and model_key = beside;
  end if;
  select r.state, r.passages, r.carried into state, passages, carried
  from kb.put_version(p_version_key, p_valid_from, p_audiences, p_model_key, p_analyzer,
    p_average_length, p_ordinals, p_bm, p_ends, p_keys) r;
  if hashes is not null then
    insert into kb.staged_vector (version_key, model_key, embed_hash, carried, vec)
    select p_version_key, beside, u.embed_hash, true, u.vec
    from unnest(hashes, vecs) u (embed_hash, vec);
    perform kb.attach_vectors(p_version_key, beside);
  end if;
end $$;

-- The gate of 0019, rule for rule. Headings and locators are compared as sets; an id's length is
-- not counted by the expression, which takes a state for each character then.
create or replace function kb.gate_passage() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  published record;
  body bytea;
begin
  for published in
    select n.version_key, v.scope_id, v.verdict_body_digest, v.title
    from (select distinct version_key from new_rows) n join kb.version v using (version_key)
  loop
    perform kb.require_cleared(published.version_key);
    select convert_to(p.body, 'UTF8') into body from kb.parsed p
    where p.version_key = published.version_key;
    if encode(sha256(body), 'hex') is distinct from published.verdict_body_digest then
      raise exception 'the stored body of version % is not the one that was cleared',
        published.version_key
        using errcode = 'KB001', hint = 'Run the stages from parse on for it again.';
    end if;
    if exists (
      select 1 from new_rows n
      where n.version_key = published.version_key and (
        n.scope_id <> published.scope_id
        or convert_to(n.text, 'UTF8')
          is distinct from substring(body from n.byte_start + 1 for n.byte_end - n.byte_start))
    ) then
      raise exception 'a passage of version % is not a slice of its cleared body',
        published.version_key
        using errcode = 'KB001', hint = 'Run the chunk stage for it again.';
    end if;
    if exists (
      select 1 from new_rows n
      where n.version_key = published.version_key
        and (length(n.passage_id) > 200 or n.passage_id !~ '^[A-Za-z0-9][A-Za-z0-9._:#-]*$')
    ) or exists (
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
    ) or exists (
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

-- Foreign keys that ask again, row by row, what is certain. A passage's scope is its version's (the
-- gate), whose own key holds. Nothing that is staged reaches search but through keys of the
-- retrieval tables. Vectors have a model (below), and a model with vectors is not deleted.
alter table kb.passage drop constraint passage_scope_id_fkey;
alter table kb.staged_chunk drop constraint staged_chunk_scope_id_fkey;
alter table kb.staged_vector drop constraint staged_vector_model_key_fkey;
alter table kb.embedding drop constraint embedding_model_key_fkey;

create or replace function kb.gate_dimensions() returns trigger language plpgsql as $$
begin
  -- The lock holds the models, as a foreign key's would: who deletes one waits, then finds these.
  perform 1 from kb.model m
  where m.model_key in (select distinct model_key from new_rows) for key share;
  if exists (
    select 1 from new_rows n left join kb.model m using (model_key)
    where kb.dimensions(n.vec) is distinct from m.dim
  ) then
    raise exception 'a vector has another number of dimensions than its model'
      using errcode = 'KB007', hint = 'Embed with the model that is named.';
  end if;
  return null;
end $$;

create function kb.keep_used_model() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  if exists (select from kb.embedding where model_key = old.model_key)
    or exists (select from kb.staged_vector where model_key = old.model_key)
  then
    raise exception 'the model % has vectors', old.model_id
      using errcode = '23503', hint = 'Delete its vectors first.';
  end if;
  return old;
end $$;
create trigger used before delete on kb.model for each row execute function kb.keep_used_model();

-- As in 0002, but counted by key before the lexemes are made of the keys: once for each lexeme
-- instead of once for each of its occurrences.
create or replace function kb.refresh_statistics(p_scope_id int) returns bigint
language plpgsql as $$
declare
  live bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.statistics', p_scope_id));
  delete from kb.term where scope_id = p_scope_id;
  insert into kb.term (scope_id, lexeme, df)
  select p_scope_id, kb.scoped_key(p_scope_id, c.key), c.df
  from (
    select k.key, count(*) as df
    from kb.lex l cross join lateral unnest(l.keys) k (key)
    where l.scope_id = p_scope_id and (l.valid_until is null or l.valid_until > now())
    group by k.key) c;
  select count(*) into live from kb.lex
  where scope_id = p_scope_id and (valid_until is null or valid_until > now());
  update kb.lexicon set passages = live, counted = live, counted_at = now()
  where scope_id = p_scope_id;
  return live;
end $$;

-- The scan's input of what a caller brings is its body: one copy of it is enough.
alter table kb.extraction alter raw_text drop not null;
comment on column kb.extraction.raw_text is 'Visible text with invisible characters; null: the body.';
