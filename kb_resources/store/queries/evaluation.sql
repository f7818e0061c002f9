-- Evaluation runs, what their labels name, and scratch scopes.

-- name: add_evaluation
insert into kb.evaluation (run_id, scope_id, name, questions_digest, half, gain, config, figures,
  ndcg_10, actor, duration_s)
values (%(run_id)s, (select scope_id from kb.scope where name = %(scope)s), %(name)s,
  %(questions_digest)s, %(half)s, %(gain)s, %(config)s, %(figures)s, %(ndcg_10)s, %(actor)s,
  %(duration_s)s)

-- name: add_evaluation_questions
insert into kb.evaluation_question (run_id, nth, scope_id, question, language, slice, answerable,
  ndcg, first, recall, nothing, relevance, top)
select %(run_id)s, q.nth, (select scope_id from kb.scope where name = %(scope)s), q.question,
  q.language, q.slice, q.answerable, q.ndcg, q.first, q.recall, q.nothing, q.relevance, q.top
from jsonb_to_recordset(%(questions)s::jsonb) q (nth int, question text, language text, slice text,
  answerable boolean, ndcg real, first int, recall real, nothing boolean, relevance real,
  top text[])

-- name: evaluation_by_id
-- A run by the first digits of its id, if they are one run's alone.
select e.run_id, s.name as scope, e.name, e.questions_digest, e.half, e.gain, e.config, e.figures,
  e.ndcg_10, e.actor, e.at, e.duration_s, e.accepted_at, e.accepted_by
from kb.evaluation e left join kb.scope s using (scope_id)
where starts_with(e.run_id, %(run_id)s) limit 2

-- name: evaluations
-- Runs, newest first: of a scope, or of labelled sets loaded for the run alone.
select e.run_id, s.name as scope, e.name, e.questions_digest, e.half, e.gain, e.config, e.figures,
  e.ndcg_10, e.actor, e.at, e.duration_s, e.accepted_at, e.accepted_by
from kb.evaluation e left join kb.scope s using (scope_id)
where s.name is not distinct from %(scope)s
  and (%(name)s::text is null or e.name = %(name)s)
  and (%(accepted)s::boolean is null or (e.accepted_at is not null) = %(accepted)s::boolean)
  and (%(before)s::timestamptz is null or e.at < %(before)s)
  and (not %(whole)s::boolean or e.half is null)
order by case when %(accepted)s::boolean then e.accepted_at end desc, e.at desc limit %(limit)s

-- name: evaluation_questions
select question as id, language, slice, answerable, ndcg, first, recall, nothing, relevance, top
from kb.evaluation_question where run_id = %(run_id)s order by nth

-- name: accept_evaluation
update kb.evaluation set accepted_at = clock_timestamp(), accepted_by = %(actor)s
where run_id = %(run_id)s

-- name: labelled_documents
-- What is found now of documents that labels name, by id or by source.
select d.document_id, d.origin, v.version, octet_length(b.body) as size_bytes,
  coalesce((select jsonb_agg(distinct p.heading_path) from kb.passage p
    where p.version_key = v.version_key), '[]') as paths
from kb.document d
join kb.scope s using (scope_id)
join kb.validity x using (document_key)
join kb.version v using (version_key)
join kb.parsed b using (version_key)
where s.name = %(scope)s and (d.document_id = any (%(names)s) or d.origin = any (%(names)s))
  and upper_inf(x.known) and x.valid @> now()

-- name: hold_scratch
-- Held until the transaction ends; false: somebody else holds it.
select pg_try_advisory_xact_lock(hashtextextended('kb.scratch.' || %(name)s, 0))

-- name: make_scratch
select kb.make_scratch_scope(%(name)s, %(actor)s)

-- name: drop_scratch
select kb.drop_scratch_scope(%(scope_id)s::int)

-- name: scratch_scopes
select scope_id, s.name from kb.scratch_scope join kb.scope s using (scope_id) order by scope_id
