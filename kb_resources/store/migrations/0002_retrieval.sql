-- The retrieval tables: what `index` publishes and search reads, nothing else.
-- Narrow search tables carry the filters (scope, audiences, validity), so that both lists of a
-- search filter before they rank. The gate triggers below trust the ledger, never the writer.


create table kb.model (
  model_key     int generated always as identity primary key,
  model_id      text not null unique check (model_id <> ''),
  dim           int not null check (dim between 1 and 4000),
  state         text not null default 'live' check (state in ('building', 'live', 'retired')),
  created_at    timestamptz not null default now()
);
comment on table kb.model is
  'An embedding model by identity (name@fingerprint); vectors of two never meet in one search.';

create table kb.passage (
  passage_key   bigint generated always as identity primary key,
  version_key   bigint not null references kb.version on delete cascade,
  scope_id      int not null references kb.scope,
  passage_id    text not null,
  ordinal       int not null check (ordinal >= 0),
  text          text not null check (text <> ''),
  context       text not null,
  heading_path  text[] not null,
  page          int,
  locator       text,
  byte_start    int not null check (byte_start >= 0),
  byte_end      int not null check (byte_end > byte_start),
  char_start    int not null check (char_start >= 0),
  char_end      int not null check (char_end > char_start),
  content_hash  text not null check (content_hash ~ '^[0-9a-f]{64}$'),
  embed_hash    text not null check (embed_hash ~ '^[0-9a-f]{64}$'),
  token_count   int not null check (token_count > 0),
  language      text not null,
  unique (scope_id, passage_id, version_key),
  unique (version_key, ordinal)
);
create index passage_embed_hash on kb.passage (scope_id, embed_hash);
comment on table kb.passage is 'A published chunk: an exact slice of a cleared body.';

-- valid_from/valid_until are the newest interval of the version (null: open); `earlier` holds the
-- others of a version that was reinstated. They repeat kb.validity, as audiences repeat
-- kb.document's: only the functions below write them.
create table kb.lex (
  passage_key   bigint primary key references kb.passage on delete cascade,
  scope_id      int not null,
  valid_from    timestamptz not null,
  valid_until   timestamptz,
  earlier       tstzmultirange,
  audiences     text[] not null,
  bm            sparsevec(1000000000) not null,
  keys          int[] not null
) with (fillfactor = 80);
alter table kb.lex alter bm set storage plain, alter keys set storage external;
create index lex_scope on kb.lex (scope_id);
create index lex_keys on kb.lex using gin (keys) with (fastupdate = off);
comment on column kb.lex.bm is 'Lexeme number to saturated term frequency (BM25 without IDF).';
comment on column kb.lex.keys is 'kb.scoped_key of each lexeme, for the GIN index.';

create table kb.embedding (
  model_key     int not null references kb.model,
  passage_key   bigint not null references kb.passage on delete cascade,
  scope_id      int not null,
  valid_from    timestamptz not null,
  valid_until   timestamptz,
  earlier       tstzmultirange,
  audiences     text[] not null,
  vec           halfvec not null check (abs(l2_norm(vec) - 1) < 0.01),
  primary key (model_key, passage_key)
) with (fillfactor = 80);
alter table kb.embedding alter vec set storage plain;
create index embedding_scope on kb.embedding (model_key, scope_id);
create index embedding_passage on kb.embedding (passage_key);

-- Vectors between the stages embed and index; emptied once published.
create table kb.staged_vector (
  version_key   bigint not null references kb.version on delete cascade,
  model_key     int not null references kb.model,
  embed_hash    text not null,
  carried       boolean not null,
  vec           halfvec not null check (abs(l2_norm(vec) - 1) < 0.01),
  primary key (version_key, model_key, embed_hash)
);
alter table kb.staged_vector alter vec set storage plain;

-- Statistics of a scope's live passages. average_length is frozen: the weights in kb.lex.bm were
-- made with it, so only a rebuild of the scope's lexical rows changes it.
create table kb.lexicon (
  scope_id       int primary key references kb.scope on delete cascade,
  analyzer       text not null,
  average_length real not null check (average_length > 0),
  passages       bigint not null default 0,
  counted        bigint not null default 0,
  counted_at     timestamptz
) with (fillfactor = 50);
create table kb.term (
  scope_id      int not null,
  lexeme        int not null,
  df            int not null check (df > 0),
  primary key (scope_id, lexeme)
);

-- One index serves all scopes: a lexeme is another key in each, so postings do not mix.
create function kb.scoped_key(p_scope_id int, p_lexeme int) returns int
language sql immutable parallel safe return
  p_lexeme # ((p_scope_id::bigint * 2654435761) & 2147483647)::int;

create function kb.dimensions(p_vec halfvec) returns int
language sql immutable parallel safe return vector_dims(p_vec);

-- Gate: nothing enters without a clean verdict for exactly the stored bytes and body. The version
-- row stays share-locked to the end of the transaction, so a changed verdict waits and then
-- withdraws what was published meanwhile.
create function kb.require_cleared(p_version_key bigint) returns void
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  perform 1 from kb.version where version_key = p_version_key for share;
  if not kb.is_cleared(p_version_key) then
    raise exception 'version % has no clean verdict for the bytes it holds', p_version_key
      using errcode = 'KB001', hint = 'Run the scan stage for it; see its findings and reason.';
  end if;
end $$;

create function kb.gate_passage() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  published record;
  body bytea;
begin
  for published in
    select n.version_key, v.scope_id, v.verdict_body_digest
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
  end loop;
  return null;
end $$;
create trigger gate after insert on kb.passage referencing new table as new_rows
  for each statement execute function kb.gate_passage();

-- Search rows: cleared too, and the filters they carry are the ledger's.
create function kb.gate_search_row() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  perform kb.require_cleared(version_key) from (
    select distinct p.version_key from new_rows n join kb.passage p using (passage_key)) v;
  if exists (
    select 1 from new_rows n
    left join kb.passage p using (passage_key)
    left join kb.version v using (version_key)
    left join kb.document d using (document_key)
    where n.scope_id is distinct from p.scope_id or n.audiences is distinct from d.audiences
  ) then
    raise exception 'a search row differs from its passage in scope or audiences'
      using errcode = 'KB001', hint = 'Publish through kb.put_version.';
  end if;
  return null;
end $$;
create trigger gate after insert on kb.lex referencing new table as new_rows
  for each statement execute function kb.gate_search_row();
create trigger gate after insert on kb.embedding referencing new table as new_rows
  for each statement execute function kb.gate_search_row();

create function kb.gate_dimensions() returns trigger language plpgsql as $$
begin
  if exists (
    select 1 from new_rows n join kb.model m using (model_key) where kb.dimensions(n.vec) <> m.dim
  ) then
    raise exception 'a vector has another number of dimensions than its model'
      using errcode = 'KB005', hint = 'Embed with the model that is named.';
  end if;
  return null;
end $$;
create trigger dimensions after insert on kb.embedding referencing new table as new_rows
  for each statement execute function kb.gate_dimensions();
create trigger dimensions after insert on kb.staged_vector referencing new table as new_rows
  for each statement execute function kb.gate_dimensions();

-- A version that loses its clearance leaves search in the same transaction. Where only the body
-- changed (another parser), the vectors are staged again, since most texts will recur.
create function kb.withdraw_version() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  if new.verdict = 'clean' and new.verdict_digest = new.digest then
    insert into kb.staged_vector (version_key, model_key, embed_hash, carried, vec)
    select distinct on (e.model_key, p.embed_hash)
      new.version_key, e.model_key, p.embed_hash, true, e.vec
    from kb.passage p join kb.embedding e using (passage_key)
    where p.version_key = new.version_key
    on conflict do nothing;
  else
    delete from kb.staged_vector where version_key = new.version_key;
  end if;
  delete from kb.passage where version_key = new.version_key;
  delete from kb.staged_chunk where version_key = new.version_key;
  delete from kb.stage_result where version_key = new.version_key
    and stage in ('chunk', 'embed', 'index', 'supersede');
  return null;
end $$;
create trigger withdraw after update on kb.version for each row
  when (old.verdict = 'clean' and (
    new.verdict is distinct from 'clean'
    or new.verdict_digest is distinct from new.digest
    or new.verdict_body_digest is distinct from new.body_digest
    or coalesce(new.state, 'indexed') <> 'indexed'))
  execute function kb.withdraw_version();

-- Validity -----------------------------------------------------------------------------------

-- The intervals of a version as known now, in the form that search rows carry.
create function kb.version_intervals(p_version_key bigint)
returns table (valid_from timestamptz, valid_until timestamptz, earlier tstzmultirange)
language sql stable as $$
  select lower(newest.valid), upper(newest.valid),
    (select range_agg(x.valid) from kb.validity x
      where x.version_key = p_version_key and upper_inf(x.known)
        and x.validity_key <> newest.validity_key)
  from (select validity_key, valid from kb.validity
    where version_key = p_version_key and upper_inf(known)
    order by lower(valid) desc limit 1) newest
$$;

-- Brings the search rows of a document in line with kb.validity. A version no longer known to
-- have held at any time keeps its rows with an empty interval. All rows of a version agree, so
-- that one of them tells whether the version has to be touched.
create function kb.sync_validity(p_document_key bigint) returns void
language plpgsql as $$
declare
  item record;
begin
  for item in
    select v.version_key, i.earlier, coalesce(i.valid_from, l.valid_from) as valid_from,
      case when i.valid_from is null then l.valid_from else i.valid_until end as valid_until
    from kb.version v
    cross join lateral (select x.valid_from, x.valid_until, x.earlier
      from kb.passage p join kb.lex x using (passage_key)
      where p.version_key = v.version_key limit 1) l
    left join lateral kb.version_intervals(v.version_key) i on true
    where v.document_key = p_document_key
      and (l.valid_from, l.valid_until, l.earlier) is distinct from
        (coalesce(i.valid_from, l.valid_from),
         case when i.valid_from is null then l.valid_from else i.valid_until end, i.earlier)
  loop
    update kb.lex l
    set valid_from = item.valid_from, valid_until = item.valid_until, earlier = item.earlier
    from kb.passage p
    where p.version_key = item.version_key and l.passage_key = p.passage_key;
    update kb.embedding e
    set valid_from = item.valid_from, valid_until = item.valid_until, earlier = item.earlier
    from kb.passage p
    where p.version_key = item.version_key and e.passage_key = p.passage_key;
  end loop;
end $$;

-- Ends what the document holds from p_at on; its history stays. Returns the versions that ended.
create function kb.close_validity(p_document_key bigint, p_at timestamptz) returns int
language plpgsql as $$
declare
  old kb.validity;
  t timestamptz := clock_timestamp();
  ended int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.document', p_document_key));
  for old in
    select * from kb.validity
    where document_key = p_document_key and upper_inf(known) and valid && tstzrange(p_at, null)
    for update
  loop
    update kb.validity
      set known = tstzrange(lower(known), greatest(t, lower(known) + interval '1 microsecond'))
      where validity_key = old.validity_key;
    if lower(old.valid) < p_at then
      insert into kb.validity (document_key, version_key, scope_id, valid, known)
      values (old.document_key, old.version_key, old.scope_id,
        tstzrange(lower(old.valid), p_at), tstzrange(t, null));
    end if;
    ended := ended + 1;
  end loop;
  if ended > 0 then
    perform kb.sync_validity(p_document_key);
  end if;
  return ended;
end $$;

-- Who may read a document is written once, in kb.document; the search rows of all its versions
-- follow in the same statement, so that the next query sees it and nothing can drift.
create function kb.spread_audiences() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  update kb.lex l set audiences = new.audiences
  from kb.version v join kb.passage p using (version_key)
  where v.document_key = new.document_key and l.passage_key = p.passage_key;
  update kb.embedding e set audiences = new.audiences
  from kb.version v join kb.passage p using (version_key)
  where v.document_key = new.document_key and e.passage_key = p.passage_key;
  return null;
end $$;
create trigger audiences after update of audiences on kb.document for each row
  when (old.audiences is distinct from new.audiences) execute function kb.spread_audiences();

create function kb.set_audiences(p_document_key bigint, p_audiences text[]) returns text[]
language plpgsql as $$
declare
  held text[];
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.document', p_document_key));
  select audiences into held from kb.document where document_key = p_document_key;
  if held @> p_audiences and p_audiences @> held then
    return held;
  end if;
  update kb.document set audiences = p_audiences, updated_at = now()
  where document_key = p_document_key;
  return p_audiences;
end $$;

-- Publishing -----------------------------------------------------------------------------------

-- Whether the staged chunks are, one for one, the passages that the version has already.
create function kb.staged_as_published(p_version_key bigint) returns boolean
language sql stable as $$
  select not exists (
    (select ordinal, passage_id, context, heading_path, page, locator, byte_start, byte_end,
        char_start, char_end, content_hash, embed_hash, token_count
      from kb.staged_chunk where version_key = p_version_key
      except
      select ordinal, passage_id, context, heading_path, page, locator, byte_start, byte_end,
        char_start, char_end, content_hash, embed_hash, token_count
      from kb.passage where version_key = p_version_key)
  ) and (select count(*) from kb.staged_chunk where version_key = p_version_key)
    = (select count(*) from kb.passage where version_key = p_version_key)
$$;

-- Publishes a cleared version in the caller's transaction: validity, passages, lexical rows and
-- vectors, the old version closed. Lexical rows come in three parallel arrays by ordinal:
-- sparsevec literals, and int[] literals of the lexemes. Vectors come from kb.staged_vector.
-- States: new, replaced, reinstated, rebuilt (same version, other rows), unchanged.
create function kb.put_version(
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
    select 1 from kb.staged_chunk c
    where c.version_key = p_version_key and c.ordinal <> all (p_ordinals))) then
    raise exception 'the lexical rows do not fit the staged chunks of version %', p_version_key
      using errcode = 'KB004', hint = 'Run the index stage for it again.';
  end if;
  if p_model_key is not null and exists (
    select 1 from (
      select embed_hash from kb.staged_chunk where version_key = p_version_key and not kept
      union all
      select p.embed_hash from kb.passage p
      where p.version_key = p_version_key and kept and not exists (select 1 from kb.embedding e
        where e.model_key = p_model_key and e.passage_key = p.passage_key)) needed
    where not exists (select 1 from kb.staged_vector s where s.version_key = p_version_key
      and s.model_key = p_model_key and s.embed_hash = needed.embed_hash)
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
  from kb.staged_chunk c join kb.staged_vector s using (version_key, embed_hash)
  where c.version_key = p_version_key and s.model_key = p_model_key and not kept;
  if p_model_key is not null then
    insert into kb.embedding (model_key, passage_key, scope_id, valid_from, valid_until, earlier,
      audiences, vec)
    select s.model_key, p.passage_key, v.scope_id, span.valid_from, span.valid_until,
      span.earlier, held_by, s.vec
    from kb.passage p join kb.staged_vector s using (version_key, embed_hash)
    where p.version_key = p_version_key and s.model_key = p_model_key
      and not exists (select 1 from kb.embedding e
        where e.model_key = s.model_key and e.passage_key = p.passage_key);
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

-- Document frequencies of the scope's live passages, counted anew.
create function kb.refresh_statistics(p_scope_id int) returns bigint
language plpgsql as $$
declare
  live bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.statistics', p_scope_id));
  delete from kb.term where scope_id = p_scope_id;
  insert into kb.term (scope_id, lexeme, df)
  select p_scope_id, kb.scoped_key(p_scope_id, k.key), count(*)
  from kb.lex l cross join lateral unnest(l.keys) k (key)
  where l.scope_id = p_scope_id and (l.valid_until is null or l.valid_until > now())
  group by 2;
  select count(*) into live from kb.lex
  where scope_id = p_scope_id and (valid_until is null or valid_until > now());
  update kb.lexicon set passages = live, counted = live, counted_at = now()
  where scope_id = p_scope_id;
  return live;
end $$;

-- Whether a passage meets the conditions of a search; null conditions hold.
create function kb.fits(
  p_passage_key bigint, p_languages text[], p_media_types text[], p_documents text[],
  p_heading_prefix text[], p_metadata jsonb
) returns boolean language plpgsql stable as $$
begin
  return exists (
    select 1 from kb.passage p join kb.version v using (version_key)
    join kb.document d using (document_key)
    where p.passage_key = p_passage_key
      and (p_languages is null or p.language = any (p_languages))
      and (p_media_types is null or v.media_type = any (p_media_types))
      and (p_documents is null or d.document_id = any (p_documents))
      and (p_heading_prefix is null
        or p.heading_path[1:cardinality(p_heading_prefix)] = p_heading_prefix)
      and (p_metadata is null or exists (select 1 from kb.parsed b
        where b.version_key = p.version_key and b.metadata @> p_metadata)));
end $$;

-- Searching ------------------------------------------------------------------------------------

-- Whether a scope owns a usable vector index for a model (`kb_resources.store.ann` makes them).
create function kb.has_ann(p_model_key int, p_scope_id int) returns boolean
language sql stable as $$
  select exists (select 1 from pg_catalog.pg_index
    where indexrelid = to_regclass(format('kb.embedding_ann_%s_%s', p_model_key, p_scope_id))
      and indisvalid)
$$;

-- Nearest passages of one large scope through its own partial index. Literal ids let the planner
-- see that the index fits; the iterative scan goes on until the filters let enough rows through,
-- and gives up after hnsw.max_scan_tuples, so that the caller must look for under-fill.
create function kb.nearest_indexed(
  p_scope_id int, p_vector halfvec, p_model_key int, p_audiences text[], p_as_of timestamptz,
  p_historical boolean, p_candidates int, p_filtered boolean, p_languages text[],
  p_media_types text[], p_documents text[], p_heading_prefix text[], p_metadata jsonb
) returns table (passage_key bigint, distance float8)
language plpgsql stable
set hnsw.iterative_scan = relaxed_order set hnsw.ef_search = 100
set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off as $$
begin
  return query execute format(
    'select x.passage_key, x.vec::halfvec(%1$s) <#> $1
     from kb.embedding x
     where x.model_key = %2$s and x.scope_id = %3$s
       and ($2 is null or x.audiences = ''{}'' or x.audiences && $2)
       and ($4 or x.valid_from <= $3 and (x.valid_until is null or x.valid_until > $3)
         or x.earlier @> $3)
       and (not $6 or kb.fits(x.passage_key, $7, $8, $9, $10, $11))
     order by x.vec::halfvec(%1$s) <#> $1 limit $5',
    kb.dimensions(p_vector), p_model_key, p_scope_id)
  using p_vector, p_audiences, p_as_of, p_historical, p_candidates, p_filtered, p_languages,
    p_media_types, p_documents, p_heading_prefix, p_metadata;
end $$;

-- One ranked page: BM25 and vector lists, each filtered before it is ranked, fused by reciprocal
-- rank (k = 60). An empty lexeme list or a null vector leaves that list out; null audiences are
-- every audience; a null condition is none. A function, because planning costs more than searching
-- a small scope: its plan is kept by the connection, behind any pooler. It runs with the rights of
-- whoever calls, so row level security decides. Vectors are scanned exactly, but for large scopes
-- that own an index. Against surprises of the planner: no sequential
-- scans, and `+ 0` keeps an index from being used where it would cost more than it saves (the
-- keys of a lexeme are its scope's own already; vectors are compared with all of the scope's).
create function kb.search(
  p_scope_ids int[], p_lexemes int[], p_weights real[], p_vector halfvec, p_model_key int,
  p_audiences text[], p_as_of timestamptz, p_historical boolean, p_k int, p_candidates int,
  p_filtered boolean, p_languages text[], p_media_types text[], p_documents text[],
  p_heading_prefix text[], p_metadata jsonb, p_vector_weight real
) returns table (
  scope text, document_id text, version int, digest text, passage_id text, title text,
  heading_path text[], page int, locator text, byte_start int, byte_end int, char_start int,
  char_end int, language text, valid_from timestamptz, valid_until timestamptz, source text,
  media_type text, context text, text text, score float8, text_rank bigint, text_score float8,
  vector_rank bigint, vector_score float8
)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  near_keys bigint[];
  near_distances float8[];
begin
  if p_vector is not null and cardinality(p_scope_ids) = 1
    and kb.has_ann(p_model_key, p_scope_ids[1])
  then
    select array_agg(passage_key), array_agg(distance) into near_keys, near_distances
    from kb.nearest_indexed(p_scope_ids[1], p_vector, p_model_key, p_audiences, p_as_of,
      p_historical, p_candidates, p_filtered, p_languages, p_media_types, p_documents,
      p_heading_prefix, p_metadata);
    if coalesce(cardinality(near_keys), 0) < p_candidates then
      near_keys := null; -- under-filled: scan exactly
      near_distances := null;
    end if;
  end if;
  return query
  with term as materialized (
    select s.scope_id, q.lexeme, q.weight, coalesce(t.df, 0) as df,
      greatest(l.counted, t.df, 1) as passages
    from unnest(p_scope_ids) s (scope_id)
    join kb.lexicon l using (scope_id)
    cross join unnest(p_lexemes, p_weights) q (lexeme, weight)
    left join kb.term t on t.scope_id = s.scope_id and t.lexeme = q.lexeme
  ),
  question as materialized (
    select scope_id,
      ('{' || string_agg(lexeme || ':' || weight * ln(1 + (passages - df + 0.5) / (df + 0.5)), ','
        order by lexeme) || '}/1000000000')::sparsevec as bm,
      coalesce(
        array_agg(kb.scoped_key(scope_id, lexeme))
          filter (where df <= greatest(0.1 * passages, 500)),
        array_agg(kb.scoped_key(scope_id, lexeme))) as keys
    from term group by scope_id
  ),
  text_list as (
    select passage_key, -score as score, row_number() over (order by score, passage_key) as rank
    from (
      select x.passage_key, x.bm <#> q.bm as score
      from question q join kb.lex x on x.scope_id + 0 = q.scope_id and x.keys && q.keys
      where (p_audiences is null or x.audiences = '{}' or x.audiences && p_audiences)
        and (p_historical
          or x.valid_from <= p_as_of and (x.valid_until is null or x.valid_until > p_as_of)
          or x.earlier @> p_as_of)
        and (not p_filtered or kb.fits(x.passage_key, p_languages, p_media_types, p_documents,
          p_heading_prefix, p_metadata))
      order by 2, 1 limit p_candidates) found
    where score < 0
  ),
  vector_list as (
    select passage_key, distance, row_number() over (order by distance, passage_key) as rank
    from (
      select n.passage_key, n.distance
      from unnest(near_keys, near_distances) n (passage_key, distance)
      union all
      select x.passage_key, (x.vec <#> p_vector) + 0 as distance
      from kb.embedding x
      where p_vector is not null and near_keys is null and x.model_key = p_model_key and x.scope_id = any (p_scope_ids)
        and (p_audiences is null or x.audiences = '{}' or x.audiences && p_audiences)
        and (p_historical
          or x.valid_from <= p_as_of and (x.valid_until is null or x.valid_until > p_as_of)
          or x.earlier @> p_as_of)
        and (not p_filtered or kb.fits(x.passage_key, p_languages, p_media_types, p_documents,
          p_heading_prefix, p_metadata))
      order by 2, 1 limit p_candidates) found
  ),
  fused as (
    select passage_key,
      coalesce(1.0::float8 / (60 + t.rank), 0)
        + coalesce(p_vector_weight::float8 / (60 + v.rank), 0) as score,
      t.rank as text_rank, t.score as text_score, v.rank as vector_rank,
      -v.distance as vector_score
    from text_list t full join vector_list v using (passage_key)
    order by 2 desc, 1 limit p_k
  )
  select s.name, d.document_id, v.version, v.digest, p.passage_id, v.title, p.heading_path,
    p.page, p.locator, p.byte_start, p.byte_end, p.char_start, p.char_end, p.language,
    held.valid_from, held.valid_until, d.origin, v.media_type, p.context, p.text,
    f.score, f.text_rank, f.text_score, f.vector_rank, f.vector_score
  from fused f
  join kb.passage p using (passage_key)
  join kb.version v using (version_key)
  join kb.document d on d.document_key = v.document_key
  join kb.scope s on s.scope_id = p.scope_id
  left join lateral (
    select lower(x.valid) as valid_from, upper(x.valid) as valid_until from kb.validity x
    where x.version_key = v.version_key and upper_inf(x.known)
      and (p_historical or x.valid @> p_as_of)
    order by x.valid @> p_as_of desc, lower(x.valid) desc limit 1) held on true
  order by f.score desc, f.passage_key;
end $$;

-- Rights: the reading role reads, inside its scopes; the pipeline cannot change a text or vector.
grant select, insert on kb.model to kb_pipeline;
grant update (state) on kb.model to kb_pipeline;
grant select, insert, delete on kb.passage, kb.lex, kb.embedding to kb_pipeline;
grant update (valid_from, valid_until, earlier, audiences) on kb.lex, kb.embedding to kb_pipeline;
grant select, insert, delete on kb.staged_vector to kb_pipeline;
grant select, insert, update, delete on kb.lexicon, kb.term to kb_pipeline;
grant select on kb.model, kb.passage, kb.lex, kb.embedding, kb.lexicon, kb.term to kb_app;

do $$
declare
  table_name text;
begin
  foreach table_name in array array['passage', 'embedding', 'lexicon', 'term'] loop
    execute format('alter table kb.%I enable row level security', table_name);
    execute format(
      'create policy pipeline on kb.%I to kb_pipeline using (true) with check (true)', table_name);
    execute format('create policy reader on kb.%I for select to kb_app
      using (scope_id = any ((select kb.allowed_scope_ids())::int[]))', table_name);
  end loop;
end $$;
alter table kb.lex enable row level security;
create policy pipeline on kb.lex to kb_pipeline using (true) with check (true);
create policy reader on kb.lex for select to kb_app
  using (scope_id + 0 = any ((select kb.allowed_scope_ids())::int[]));
-- The staging tables are filled by COPY, which row level security refuses. They need none: the
-- reading role has no right on them and the pipeline sees all scopes.
drop policy pipeline on kb.staged_chunk;
alter table kb.staged_chunk disable row level security;

-- Row level security lets only leakproof operators reach an index first. `&&` on arrays compares
-- and says nothing of its arguments; marking it so takes a superuser (the embedded server).
do $$
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    alter function pg_catalog.arrayoverlap(anyarray, anyarray) leakproof;
  end if;
end $$;
