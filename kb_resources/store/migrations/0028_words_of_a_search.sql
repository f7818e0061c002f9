-- A search says how many of its words a passage must hold, and costs less.

-- What a caller asked of a search beside its question and its filters: without them a search that
-- is run again differs, and its neighbours would be blamed.
alter table kb.retrieval_log add column options jsonb;
comment on column kb.retrieval_log.options is
  'Asked otherwise than by default: words, fusion, meaning_weight, min_score; null: nothing.';

-- plpgsql, whose plan the connection keeps; and most scopes own no index, as the name alone says.
create or replace function kb.has_ann(p_model_key int, p_scope_id int) returns boolean
language plpgsql stable as $$
declare
  index regclass := to_regclass('kb.embedding_ann_' || p_model_key || '_' || p_scope_id);
begin
  return index is not null
    and exists (select 1 from pg_catalog.pg_index where indexrelid = index and indisvalid);
end $$;

-- Passages that hold every word of a question, whatever else is asked of them. A word is one or
-- more lexemes (its stems by language, its spellings), any of which will do; `p_words` numbers the
-- word of each lexeme. Only passages with the rarest of the words are looked at.
create function kb.holding(p_scope_ids int[], p_words int[], p_word_lexemes int[])
returns bigint[]
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  return coalesce((
    with wanted as materialized (
      select s.scope_id, w.word, array_agg(kb.scoped_key(s.scope_id, w.lexeme)) as keys,
        coalesce(sum(t.df), 0) as df
      from unnest(p_scope_ids) s (scope_id)
      cross join unnest(p_words, p_word_lexemes) w (word, lexeme)
      left join kb.term t on t.scope_id = s.scope_id and t.lexeme = w.lexeme
      group by s.scope_id, w.word
    ),
    rarest as materialized (
      select distinct on (scope_id) scope_id, keys from wanted order by scope_id, df, word
    )
    select array_agg(x.passage_key)
    from rarest r join kb.lex x on x.scope_id + 0 = r.scope_id and x.keys && r.keys
    where not exists (
      select 1 from wanted w where w.scope_id = x.scope_id and not x.keys && w.keys)), '{}');
end $$;

drop function kb.search;

-- As in migration 0017, whose comments hold, but for these:
-- With `p_words` and `p_word_lexemes` every passage holds every word, however it is found (see
-- kb.holding).
-- A word makes candidates where at most 200 passages have it (or a tenth of the scope) instead of
-- 500: that costs .001 of nDCG@10 on one labelled set at most (bench/search_candidates.py) and
-- spares scopes of some thousand passages a third of the text list.
-- IDF in float8: logarithms of numeric were a tenth of searching a small scope.
-- The scopes' names are given, in the order of `p_scope_ids`; they are looked up only for readers
-- of the release before, which do not give them.
create function kb.search(
  p_scope_ids int[], p_lexemes int[], p_weights real[], p_vector halfvec, p_model_key int,
  p_audiences text[], p_as_of timestamptz, p_historical boolean, p_k int, p_candidates int,
  p_filtered boolean, p_languages text[], p_media_types text[], p_documents text[],
  p_heading_prefix text[], p_metadata jsonb, p_vector_weight real, p_full_share real default 0,
  p_known_at timestamptz default null, p_scopes text[] default null, p_words int[] default null,
  p_word_lexemes int[] default null
) returns table (
  scope text, document_id text, version int, digest text, passage_id text, title text,
  heading_path text[], page int, locator text, byte_start int, byte_end int, char_start int,
  char_end int, language text, valid_from timestamptz, valid_until timestamptz, source text,
  media_type text, context text, text text, score float8, text_rank bigint, text_score float8,
  text_share float8, vector_rank bigint, vector_score float8, cosine float8
)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  near_keys bigint[];
  near_distances float8[];
  holding bigint[];
begin
  if p_words is not null then
    holding := kb.holding(p_scope_ids, p_words, p_word_lexemes);
  elsif p_vector is not null and p_known_at is null and cardinality(p_scope_ids) = 1
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
    select scope_id, lexeme, df, passages,
      weight * ln(1 + (passages - df + 0.5::float8) / (df + 0.5::float8)) as idf
    from (
      select s.scope_id, q.lexeme, q.weight, coalesce(t.df, 0) as df,
        greatest(l.counted, t.df, 1) as passages
      from unnest(p_scope_ids) s (scope_id)
      join kb.lexicon l using (scope_id)
      cross join unnest(p_lexemes, p_weights) q (lexeme, weight)
      left join kb.term t on t.scope_id = s.scope_id and t.lexeme = q.lexeme) counted
  ),
  question as materialized (
    select scope_id,
      ('{' || string_agg(lexeme || ':' || idf::real, ',' order by lexeme)
        || '}/1000000000')::sparsevec as bm,
      greatest(2.2 * sum(idf), 1e-9) as most,
      coalesce(
        array_agg(kb.scoped_key(scope_id, lexeme))
          filter (where df <= greatest(0.1 * passages, 200)),
        array_agg(kb.scoped_key(scope_id, lexeme))) as keys
    from term group by scope_id
  ),
  text_list as (
    select passage_key, -score as score, -score / most as share,
      row_number() over (order by score, passage_key) as rank
    from (
      select x.passage_key, x.bm <#> q.bm as score, q.most
      from question q join kb.lex x on x.scope_id + 0 = q.scope_id and x.keys && q.keys
      where (p_audiences is null or x.audiences = '{}' or x.audiences && p_audiences)
        and case when p_known_at is null then p_historical
            or x.valid_from <= p_as_of and (x.valid_until is null or x.valid_until > p_as_of)
            or x.earlier @> p_as_of
          else kb.known_to_hold(x.passage_key, p_as_of, p_historical, p_known_at) end
        and (not p_filtered or kb.fits(x.passage_key, p_languages, p_media_types, p_documents,
          p_heading_prefix, p_metadata))
        and (holding is null or x.passage_key in (select unnest(holding)))
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
      where p_vector is not null and near_keys is null and x.model_key = p_model_key
        and x.scope_id = any (p_scope_ids)
        and (p_audiences is null or x.audiences = '{}' or x.audiences && p_audiences)
        and case when p_known_at is null then p_historical
            or x.valid_from <= p_as_of and (x.valid_until is null or x.valid_until > p_as_of)
            or x.earlier @> p_as_of
          else kb.known_to_hold(x.passage_key, p_as_of, p_historical, p_known_at) end
        and (not p_filtered or kb.fits(x.passage_key, p_languages, p_media_types, p_documents,
          p_heading_prefix, p_metadata))
        and (holding is null or x.passage_key in (select unnest(holding)))
      order by 2, 1 limit p_candidates) found
  ),
  fused as (
    select passage_key,
      coalesce(case when p_full_share > 0 then least(1, t.share / p_full_share) else 1 end
          / (60 + t.rank)::float8, 0)
        + coalesce(p_vector_weight::float8 / (60 + v.rank), 0) as score,
      t.rank as text_rank, t.score as text_score, t.share as text_share, v.rank as vector_rank,
      -v.distance as vector_score
    from text_list t full join vector_list v using (passage_key)
    order by 2 desc, 1 limit p_k
  )
  select coalesce(p_scopes[array_position(p_scope_ids, p.scope_id)],
      (select s.name from kb.scope s where s.scope_id = p.scope_id)),
    d.document_id, v.version, v.digest,
    p.passage_id, v.title, p.heading_path, p.page, p.locator, p.byte_start, p.byte_end,
    p.char_start, p.char_end, p.language, held.valid_from, held.valid_until, d.origin, v.media_type,
    p.context, p.text,
    f.score, f.text_rank, f.text_score, f.text_share, f.vector_rank, f.vector_score,
    coalesce(f.vector_score, (select -(e.vec <#> p_vector) from kb.embedding e
      where p_vector is not null and e.passage_key = f.passage_key and e.model_key = p_model_key))
  from fused f
  join kb.passage p using (passage_key)
  join kb.version v using (version_key)
  join kb.document d on d.document_key = v.document_key
  left join lateral (
    select lower(x.valid) as valid_from, upper(x.valid) as valid_until from kb.validity x
    where x.version_key = v.version_key
      and case when p_known_at is null then upper_inf(x.known) else x.known @> p_known_at end
      and (p_historical or x.valid @> p_as_of)
    order by x.valid @> p_as_of desc, lower(x.valid) desc limit 1) held on true
  order by f.score desc, f.passage_key;
end $$;
