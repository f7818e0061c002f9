-- What runs took, and documents that wait for an operator.

-- name: record_usage
insert into kb.usage (scope_id, run_id, cause, stage, documents, cpu_s, model, tokens, money,
  currency)
select s.scope_id, %(run_id)s, %(cause)s, %(stage)s, %(documents)s, %(cpu_s)s, %(model)s,
  %(tokens)s, %(money)s, %(currency)s
from kb.scope s where s.name = %(scope)s

-- name: usage_of_run
-- Sums of one run: documents of its busiest step, computing time, tokens, money by currency.
select coalesce(max(t.documents), 0)::int as documents, coalesce(sum(t.cpu_s), 0) as cpu_s,
  coalesce(sum(t.tokens), 0)::bigint as tokens,
  (select coalesce(jsonb_object_agg(m.currency, m.money), '{}') from (
    select currency, sum(money)::float8 as money from kb.usage
    where run_id = %(run_id)s and money is not null group by currency) m) as money,
  coalesce(bool_or(t.unpriced), false) as unpriced
from (
  select stage, sum(documents) as documents, sum(cpu_s) as cpu_s, sum(tokens) as tokens,
    bool_or(tokens > 0 and money is null) as unpriced
  from kb.usage where run_id = %(run_id)s group by stage) t

-- name: usage_since
-- By day, scope and model since an instant; a row without a model carries the computing time.
-- Answers are asked by readers: they have tokens and a model, and no run. What convert and enrich
-- asked has a row a call, with the money of then.
select day, scope, model, sum(runs)::int as runs, sum(cpu_s) as cpu_s,
  sum(tokens)::bigint as tokens, sum(answer_tokens)::bigint as answer_tokens,
  sum(money)::float8 as money, max(currency) as currency
from (
  select (u.at at time zone 'UTC')::date as day, s.name as scope, u.model,
    count(distinct u.run_id) as runs, sum(u.cpu_s) as cpu_s, sum(u.tokens) as tokens,
    0 as answer_tokens, sum(u.money) as money, max(u.currency) as currency
  from kb.usage u join kb.scope s using (scope_id)
  where u.at >= %(since)s
  group by 1, 2, 3
  union all
  select (a.at at time zone 'UTC')::date, s.name, a.answerer, 0, 0,
    coalesce(sum(a.prompt_tokens), 0), coalesce(sum(a.answer_tokens), 0), null, null
  from kb.answer_log a join kb.scope s on s.scope_id = a.scope_ids[1]
  where a.at >= %(since)s and (a.prompt_tokens is not null or a.answer_tokens is not null)
  group by 1, 2, 3
  union all
  select (c.at at time zone 'UTC')::date, s.name, c.model, 0, 0,
    coalesce(sum(c.prompt_tokens), 0), coalesce(sum(c.answer_tokens), 0), sum(c.money),
    max(c.currency)
  from kb.model_call c join kb.scope s using (scope_id)
  where c.at >= %(since)s
  group by 1, 2, 3
) t
group by 1, 2, 3 order by 1 desc, 2, 3 nulls first

-- name: documents_in_need
-- Documents that a person has to look at, those that failed first, then the newest.
select s.name as scope, d.document_id, d.state, coalesce(d.reason, '') as reason, d.updated_at,
  v.version, v.digest
from kb.document d
join kb.scope s using (scope_id)
left join lateral (select version, digest from kb.version v
  where v.document_key = d.document_key order by v.version desc limit 1) v on true
where s.closed_at is null and d.state = any (%(states)s)
order by array_position(%(states)s, d.state), d.updated_at desc, d.document_id
limit %(limit)s
