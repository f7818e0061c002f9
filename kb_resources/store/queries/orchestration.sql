-- What an orchestrator asks the ledger beside running stages.

-- name: waiting_documents
-- Pending documents, oldest first, each with the newest batch that names it, if any. Those for which
-- max_tries batches were made to try it once more since it last changed state are left out.
select s.name as scope, d.document_id, d.updated_at as since, b.batch_id, b.cause, b.created_at
from kb.document d
join kb.scope s using (scope_id)
left join lateral (
  select t.batch_id, t.cause, t.created_at from kb.batch_item i join kb.batch t using (batch_id)
  where i.document_key = d.document_key order by t.created_at desc limit 1) b on true
where d.state = 'pending' and d.updated_at < now() - make_interval(secs => %(older_than_s)s)
  and (select count(*) from kb.batch_item i join kb.batch t using (batch_id)
    where i.document_key = d.document_key and t.cause = 'stranded'
      and t.created_at >= d.updated_at) < %(max_tries)s
order by d.updated_at, d.document_key limit %(limit)s

-- name: version_vectors
-- Vectors of a version's chunks by the live model of its scope: the staged ones, or once published
-- those beside its passages. Before a scope has a live model they are those of any.
with live as (
  select g.live_key from kb.version v join kb.generation g using (scope_id)
  where v.version_key = %(version_key)s
), staged as (
  select distinct embed_hash from kb.staged_chunk where version_key = %(version_key)s
), chunk as (
  select embed_hash from staged
  union
  select embed_hash from kb.passage
  where version_key = %(version_key)s and not exists (select 1 from staged)
), vector as (
  select embed_hash, model_key, vec from kb.staged_vector
  where version_key = %(version_key)s and exists (select 1 from staged)
    and model_key = coalesce((select live_key from live), model_key)
  union all
  select distinct on (p.embed_hash, e.model_key) p.embed_hash, e.model_key, e.vec
  from kb.passage p join kb.embedding e using (passage_key)
  where p.version_key = %(version_key)s and not exists (select 1 from staged)
    and e.model_key = coalesce((select live_key from live), e.model_key)
)
select
  (select count(*) from chunk c
    where not exists (select 1 from vector v where v.embed_hash = c.embed_hash)) as missing,
  (select count(*) - count(distinct embed_hash) from vector) as doubled,
  (select count(distinct model_key) from vector) as models,
  (select coalesce(max(abs(l2_norm(vec) - 1)), 0)::float8 from vector) as worst_norm_error

-- name: lexicons
-- Term statistics by scope: passages, how many were counted, distinct terms, and when.
select s.name as scope, l.analyzer, l.passages, l.counted, l.counted_at,
  (select count(*) from kb.term t where t.scope_id = l.scope_id) as terms
from kb.lexicon l join kb.scope s using (scope_id) order by s.name

-- name: scope_sums
-- For every open scope the numbers that have to add up; see stages.orchestration.ScopeSums.
with current as (
  select x.document_key, x.version_key from kb.validity x
  where upper_inf(x.known) and x.valid @> now()
), document as (
  select d.scope_id, d.state, d.updated_at, (
    select count(*) from current c where c.document_key = d.document_key) as versions
  from kb.document d
), published as (
  select l.scope_id, count(*) as passages, count(*) filter (where not exists (
    select 1 from current c where c.version_key = p.version_key)) as adrift
  from kb.lex l join kb.passage p using (passage_key)
  where l.valid_from <= now() and (l.valid_until is null or l.valid_until > now())
  group by l.scope_id
)
select s.name as scope, count(d.scope_id) as documents,
  coalesce((select jsonb_object_agg(t.state, t.n) from (
    select state, count(*) as n from document where scope_id = s.scope_id group by state) t),
    '{}') as states,
  count(*) filter (where d.state = 'indexed' and d.versions <> 1) as indexed_without_version,
  coalesce(max(p.passages), 0) as current_passages,
  coalesce(max(p.adrift), 0) as passages_adrift,
  coalesce(extract(epoch from now() - min(d.updated_at) filter (where d.state = 'pending')),
    0)::float8 as backlog_age_s
from kb.scope s
left join document d using (scope_id)
left join published p using (scope_id)
where s.closed_at is null
group by s.scope_id, s.name order by s.name
