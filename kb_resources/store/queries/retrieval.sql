-- Writing side of the retrieval tables; reading is in search.sql.

-- name: version_scope
-- Scope of a version with its lexicon: analyzer and frozen average length, null before the first;
-- and what rows are encoded with: mask of the scope's keys, OIDs of the types of vectors.
select v.scope_id, l.analyzer, l.average_length, kb.scoped_key(v.scope_id, 0),
  'sparsevec'::regtype::oid::bigint, 'halfvec'::regtype::oid::bigint
from kb.version v left join kb.lexicon l using (scope_id)
where v.version_key = %(version_key)s

-- name: put_version
-- Publishes a version; see the comments on the functions in migrations 0020 and 0022.
select state, passages, carried from kb.put_generations(%(version_key)s::bigint,
  %(valid_from)s, %(audiences)s::text[], %(model_key)s::int, %(analyzer)s,
  %(average_length)s::real, %(ordinals)s::int[], %(bm)s::sparsevec[], %(ends)s::int[],
  %(keys)s::int[])

-- name: version_scopes
-- As version_scope, of several versions, which get no vectors along.
select v.version_key, v.scope_id, l.analyzer, l.average_length, kb.scoped_key(v.scope_id, 0),
  'sparsevec'::regtype::oid::bigint
from kb.version v left join kb.lexicon l using (scope_id)
where v.version_key = any (%(version_keys)s::bigint[])

-- name: put_versions
-- Publishes several versions, each with an outcome of its own; see migration 0026.
select state, passages, carried, failure, message, hint from kb.put_versions(
  %(version_keys)s::bigint[], %(valid_from)s::timestamptz[], %(readers)s::int[],
  %(audiences)s::text[], %(model_keys)s::int[], %(analyzers)s::text[], %(averages)s::real[],
  %(rows)s::int[], %(ordinals)s::int[], %(bm)s::sparsevec[], %(ends)s::int[], %(keys)s::int[])

-- name: set_audiences
select kb.set_audiences(%(document_key)s::bigint, %(audiences)s::text[])

-- name: end_document
-- Ends what a document holds at an instant; returns how many intervals that touched.
select kb.close_validity(%(document_key)s::bigint, %(at)s)

-- name: end_version
select kb.close_validity(document_key, %(at)s) from kb.version
where version_key = %(version_key)s

-- name: refresh_statistics
select kb.refresh_statistics(%(scope_id)s::int)

-- name: statistics_due
-- Whether the scope grew or shrank so much since it was counted that IDF weights are off.
select abs(passages - counted) > greatest(30, counted * %(growth)s) from kb.lexicon
where scope_id = %(scope_id)s

-- name: lock_lexicon
-- Held by a rebuild; a put waits for it, and it for puts under way.
select pg_advisory_xact_lock(hashtextextended('kb.lexicon', %(scope_id)s))

-- name: set_lexicon
insert into kb.lexicon (scope_id, analyzer, average_length)
values (%(scope_id)s, %(analyzer)s, %(average_length)s)
on conflict (scope_id) do update set analyzer = excluded.analyzer,
  average_length = excluded.average_length

-- name: outdated_scopes
select s.scope_id, s.name from kb.lexicon l join kb.scope s using (scope_id)
where l.analyzer <> %(analyzer)s order by s.name

-- name: passages_after
-- The scope's passages in order of their keys, a batch at a time.
select passage_key, text, context, language from kb.passage
where scope_id = %(scope_id)s and passage_key > %(after)s order by passage_key limit %(limit)s

-- name: sample_passages
-- Up to `size` passages of a scope, spread by their hashes.
select passage_key, text, context, language from kb.passage
where scope_id = %(scope_id)s order by content_hash limit %(size)s

-- name: replace_lexical
-- New lexical rows for passages, with validity and audiences as they were.
with old as (
  delete from kb.lex where passage_key = any (%(passage_keys)s)
  returning passage_key, scope_id, valid_from, valid_until, earlier, audiences
)
insert into kb.lex (passage_key, scope_id, valid_from, valid_until, earlier, audiences, bm, keys)
select old.*, given.bm,
  (%(keys)s::int[])[coalesce((%(ends)s::int[])[given.nth - 1], 0) + 1 : (%(ends)s::int[])[given.nth]]
from old join unnest(%(passage_keys)s::bigint[], %(bm)s::sparsevec[]) with ordinality
  given (passage_key, bm, nth) using (passage_key)

-- name: lexical_encoding
-- What lexical rows of a scope are encoded with; see version_scope.
select kb.scoped_key(%(scope_id)s::int, 0) as key_mask, 'sparsevec'::regtype::oid::bigint as sparsevec_oid

-- name: find_model
select model_key from kb.model where model_id = %(model_id)s

-- name: add_model
with made as (
  insert into kb.model (model_id, dim) values (%(model_id)s, %(dim)s)
  on conflict (model_id) do nothing returning model_key, dim
)
select model_key, dim from made
union all
select model_key, dim from kb.model where model_id = %(model_id)s
limit 1

-- name: staging_vectors
-- Dimensions of a model, and whether vectors by it are staged for any of the versions.
select dim, exists (select from kb.staged_vector s
  where s.version_key = any (%(version_keys)s) and s.model_key = m.model_key)
from kb.model m where model_key = %(model_key)s

-- name: known_hashes
-- Which texts of a scope have a vector by this model already, published or staged.
select p.embed_hash from kb.passage p
where p.scope_id = %(scope_id)s and p.embed_hash = any (%(hashes)s)
  and exists (select 1 from kb.embedding e
    where e.model_key = %(model_key)s and e.passage_key = p.passage_key)
union
select s.embed_hash from kb.staged_vector s join kb.version v using (version_key)
where v.scope_id = %(scope_id)s and s.model_key = %(model_key)s and s.embed_hash = any (%(hashes)s)

-- name: copy_staged_vectors
copy kb.staged_vector (version_key, model_key, embed_hash, carried, vec) from stdin (format binary)

-- name: ann_sizes
-- Vectors of each live model and scope, and whether their own index is there.
select m.model_key, m.dim, e.scope_id, e.vectors, i.indexrelid is not null as present,
  coalesce(i.indisvalid, false) as valid
from kb.model m
join (select model_key, scope_id, count(*) as vectors from kb.embedding
  group by model_key, scope_id) e using (model_key)
left join pg_catalog.pg_index i
  on i.indexrelid = to_regclass(format('kb.embedding_ann_%%s_%%s', m.model_key, e.scope_id))
where m.state <> 'retired'
order by e.vectors desc, m.model_key, e.scope_id

-- name: ann_strays
-- Vector indexes whose model is retired or whose scope has no vectors left.
select c.relname
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'kb' and c.relkind = 'i' and c.relname ~ '^embedding_ann_[0-9]+_[0-9]+$'
  and not exists (
    select 1 from kb.embedding e join kb.model m using (model_key)
    where m.state <> 'retired' and m.model_key = split_part(c.relname, '_', 3)::int
      and e.scope_id = split_part(c.relname, '_', 4)::int)
