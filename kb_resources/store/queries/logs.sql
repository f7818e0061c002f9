-- The logs that lead from an answer to bytes. Written as kb_app in the transaction they speak of;
-- row level security lets a reader see rows whose scopes are all its own.

-- name: add_retrieval
insert into kb.retrieval_log (correlation_id, scope_ids, actor, audiences, question_digest, key_id,
  asked_mode, mode, k, as_of, known_at, historical, filters, options, model_id, analyzer, hits)
values (%(correlation_id)s, %(scope_ids)s::int[], %(actor)s, %(audiences)s::text[],
  %(question_digest)s, %(key_id)s, %(asked_mode)s, %(mode)s, %(k)s, %(as_of)s, %(known_at)s,
  %(historical)s,
  %(filters)s::jsonb, %(options)s::jsonb, %(model_id)s, %(analyzer)s, %(hits)s::jsonb)

-- name: add_disclosure
insert into kb.disclosure_log (correlation_id, scope_ids, actor, purpose, destination, hosting,
  model, content_class, decision, parts)
select %(correlation_id)s, array_agg(scope_id), %(actor)s, %(purpose)s, %(destination)s,
  %(hosting)s, %(model)s, %(content_class)s, %(decision)s, %(parts)s::jsonb
from kb.scope where name = any (%(scopes)s)

-- name: add_answer
insert into kb.answer_log (correlation_id, scope_ids, actor, answerer, abstained, answer_digest,
  statements, rejected, calls, prompt_tokens, answer_tokens, duration_s)
select %(correlation_id)s, array_agg(scope_id), %(actor)s, %(answerer)s, %(abstained)s,
  %(answer_digest)s, %(statements)s::jsonb, %(rejected)s::jsonb, %(calls)s, %(prompt_tokens)s,
  %(answer_tokens)s, %(duration_s)s
from kb.scope where name = any (%(scopes)s)

-- name: logged_retrievals
-- Searches under a correlation id, oldest first, with the names of their scopes.
select r.correlation_id, r.at, r.actor, r.audiences, r.question_digest, r.key_id, r.asked_mode,
  r.mode, r.k, r.as_of, r.known_at, r.historical, r.filters, r.options, r.model_id, r.analyzer,
  r.hits,
  (select array_agg(s.name order by s.scope_id) from kb.scope s
    where s.scope_id = any (r.scope_ids)) as scopes
from kb.retrieval_log r where r.correlation_id = %(correlation_id)s order by r.at, r.retrieval_id

-- name: logged_disclosures
select correlation_id, at, actor, purpose, destination, hosting, model, content_class, decision,
  parts
from kb.disclosure_log where correlation_id = %(correlation_id)s order by at, disclosure_id

-- name: logged_answers
select correlation_id, at, actor, answerer, abstained, answer_digest, statements, rejected, calls,
  prompt_tokens, answer_tokens, duration_s
from kb.answer_log where correlation_id = %(correlation_id)s order by at, answer_id

-- name: recent_retrievals
-- Newest searches of the session's scopes.
select correlation_id, at, actor, mode, jsonb_array_length(hits) as hits
from kb.retrieval_log where at < coalesce(%(before)s, 'infinity'::timestamptz)
order by at desc limit %(limit)s

-- name: usage
-- Calls and tokens of a scope's answers by day and answerer.
select (a.at at time zone 'UTC')::date as day, a.answerer, count(*) as answers,
  count(*) filter (where a.abstained) as abstained, sum(a.calls)::int as calls,
  coalesce(sum(a.prompt_tokens), 0)::bigint as prompt_tokens,
  coalesce(sum(a.answer_tokens), 0)::bigint as answer_tokens
from kb.answer_log a join kb.scope s on s.scope_id = any (a.scope_ids)
where s.name = %(scope)s and a.at >= %(since)s
group by 1, 2 order by 1 desc, 2

-- name: ensure_log_partitions
select kb.ensure_log_partitions(%(since)s, %(months)s)

-- name: drop_log_partitions
select kb.drop_log_partitions(%(before)s)

-- name: traced_passages
-- What the cited passages rest on now: do the version's bytes and the slice of its body agree.
select s.name as scope, d.document_id, d.state, v.version, v.digest, v.size_bytes, p.passage_id,
  v.title, p.page, p.byte_start, p.byte_end,
  convert_to(p.text, 'UTF8') is not distinct from
    substring(convert_to(b.body, 'UTF8') from p.byte_start + 1 for p.byte_end - p.byte_start)
    as is_slice
from jsonb_to_recordset(%(places)s::jsonb)
  as c (scope text, document_id text, version int, passage_id text)
join kb.scope s on s.name = c.scope
join kb.document d on d.scope_id = s.scope_id and d.document_id = c.document_id
join kb.version v on v.document_key = d.document_key and v.version = c.version
left join kb.passage p on p.version_key = v.version_key and p.passage_id = c.passage_id
left join kb.parsed b on b.version_key = v.version_key

-- name: content_classes
-- How far the text of documents may travel: their own class, else their scope's, else confidential.
select s.name as scope, d.document_id,
  coalesce(d.content_class, s.settings->>'content_class', 'confidential') as content_class
from kb.document d join kb.scope s using (scope_id)
where s.name = any (%(scopes)s) and d.document_id = any (%(documents)s)

-- name: scope_classes
-- Class of what is asked in scopes: the scope's setting, else confidential.
select name, coalesce(settings->>'content_class', 'confidential') from kb.scope
where name = any (%(scopes)s)

-- name: set_document_class
update kb.document d set content_class = %(content_class)s, updated_at = now()
from kb.scope s where s.scope_id = d.scope_id and s.name = %(scope)s
  and d.document_id = %(document_id)s
returning d.document_key

-- name: set_scope_class
update kb.scope set settings = case when %(content_class)s::text is null
    then settings - 'content_class'
    else settings || jsonb_build_object('content_class', %(content_class)s::text) end
where name = %(scope)s returning scope_id

-- name: documents_since
-- What a replay tells of documents: where they stand now, and what happened to them since.
select s.name as scope, d.document_id, d.state, d.reason, d.audiences, cur.version as version_now,
  cur.valid_from, coalesce(since.events, '[]') as events
from jsonb_to_recordset(%(places)s::jsonb) as c (scope text, document_id text)
join kb.scope s on s.name = c.scope
join kb.document d on d.scope_id = s.scope_id and d.document_id = c.document_id
left join lateral (
  select v.version, lower(x.valid) as valid_from
  from kb.validity x join kb.version v on v.version_key = x.version_key
  where x.document_key = d.document_key and upper_inf(x.known) and x.valid @> now() limit 1
) cur on true
left join lateral (
  select jsonb_agg(jsonb_build_object('at', l.at, 'event', l.event, 'version', l.version,
    'verdict', l.details->'verdict', 'rule_pack', l.details->'rule_pack') order by l.lifecycle_id)
    as events
  from kb.lifecycle l where l.document_key = d.document_key and l.at > %(since)s
) since on true
