-- Generations of vectors: which model a scope is searched by, which is filled or kept beside it.

-- name: generations
-- Generations of one scope or of all, by name of the scope.
select s.name as scope, s.scope_id, s.closed_at, l.model_id as live, g.live_key, g.live_since,
  b.model_id as beside, g.beside_key, g.beside_is, g.beside_since, g.embedded, g.embedded_s
from kb.generation g
join kb.scope s using (scope_id)
join kb.model l on l.model_key = g.live_key
left join kb.model b on b.model_key = g.beside_key
where %(scope)s::text is null or s.name = %(scope)s
order by s.name

-- name: lock_generation
-- Waits for puts under way and holds new ones back until the end of the transaction.
select live_key from kb.generation where scope_id = %(scope_id)s for update

-- name: start_generation
update kb.generation set beside_key = %(model_key)s, beside_is = 'shadow', beside_since = now(),
  embedded = 0, embedded_s = 0
where scope_id = %(scope_id)s and beside_key is null and live_key <> %(model_key)s
returning scope_id

-- name: turn_generation
-- The swap and the rollback: the one beside takes the place of the live one, which stays beside.
update kb.generation set live_key = beside_key, live_since = now(), beside_key = live_key,
  beside_is = %(left_as)s, beside_since = now()
where scope_id = %(scope_id)s and beside_key = %(model_key)s and beside_is <> %(left_as)s
returning scope_id

-- name: leave_generation
-- Nothing is beside any more; its vectors are deleted after this.
update kb.generation set beside_key = null, beside_is = null, beside_since = null
where scope_id = %(scope_id)s and beside_key is not null returning scope_id

-- name: delete_other_vectors
-- Up to `limit` vectors of a scope that are not of its live model.
delete from kb.embedding where ctid = any (array(
  select e.ctid from kb.embedding e join kb.generation g using (scope_id)
  where e.scope_id = %(scope_id)s and e.model_key <> g.live_key
    and e.model_key is distinct from g.beside_key limit %(limit)s))

-- name: forget_other_work
delete from kb.embed_work w using kb.generation g
where w.scope_id = %(scope_id)s and g.scope_id = w.scope_id and w.model_key <> g.live_key
  and w.model_key is distinct from g.beside_key

-- name: count_fill
-- What a batch added to the numbers that the rest's duration is guessed from.
update kb.generation set embedded = embedded + %(vectors)s, embedded_s = embedded_s + %(seconds)s
where scope_id = %(scope_id)s and beside_key = %(model_key)s

-- name: generation_progress
-- Passages of a scope, history included, how many have a vector by the model, and of those now
-- valid how many have none. `texts` and `tokens`: what is still to be computed once what has the
-- same text was carried over; `too_long`: passages longer than so many tokens.
with passage as (
  select p.passage_key, p.embed_hash, p.token_count, exists (select from kb.embedding e
      where e.model_key = %(model_key)s and e.passage_key = p.passage_key offset 0) as done
  from kb.passage p where p.scope_id = %(scope_id)s
), missing as (
  select m.embed_hash, max(m.token_count) as token_count from passage m
  where not m.done and not exists (select from passage d
    where d.done and d.embed_hash = m.embed_hash)
  group by m.embed_hash
)
select count(*) as passages, count(*) filter (where done) as done,
  (select count(*) from missing) as texts,
  (select coalesce(sum(token_count), 0) from missing)::bigint as tokens,
  count(*) filter (where token_count > %(max_tokens)s) as too_long,
  (select count(*) from kb.lex l where l.scope_id = %(scope_id)s
    and (l.valid_until is null or l.valid_until > now())
    and not exists (select from kb.embedding e
      where e.model_key = %(model_key)s and e.passage_key = l.passage_key offset 0))
    as missing_now
from passage

-- name: unfilled_documents
-- Documents with a passage that has no vector by the model, and that were not given up; those
-- found now come first.
select w.document_key, d.document_id
from (
  select v.document_key, bool_or(l.valid_until is null) as now
  from kb.passage p join kb.version v using (version_key) join kb.lex l using (passage_key)
  where p.scope_id = %(scope_id)s and not exists (select from kb.embedding e
    where e.model_key = %(model_key)s and e.passage_key = p.passage_key offset 0)
  group by v.document_key) w
join kb.document d using (document_key)
where not exists (select from kb.embed_work f where f.document_key = w.document_key
    and f.model_key = %(model_key)s and f.state = 'failed')
  and w.document_key <> all (%(passed_over)s)
order by not w.now, w.document_key limit %(limit)s

-- name: unfilled_versions
-- Versions of a document with passages that have no vector by the model, the newest first.
select v.version_key, v.version
from kb.version v
where v.document_key = %(document_key)s and exists (
  select from kb.passage p where p.version_key = v.version_key and not exists (
    select from kb.embedding e
    where e.model_key = %(model_key)s and e.passage_key = p.passage_key offset 0))
order by v.version desc

-- name: carry_vectors
select kb.carry_vectors(%(version_key)s, %(model_key)s)

-- name: texts_to_fill
-- Embedded texts of a version's passages that have no vector, each once, in reading order.
select p.embed_hash, min(p.context) as context, min(p.text) as text,
  min(p.content_hash) as content_hash, min(p.passage_id) as passage_id,
  max(p.token_count) as token_count
from kb.passage p
where p.version_key = %(version_key)s and not exists (select from kb.embedding e
  where e.model_key = %(model_key)s and e.passage_key = p.passage_key offset 0)
group by p.embed_hash order by min(p.ordinal)

-- name: begin_fill_try
-- A document's try that is about to be settled as failed.
insert into kb.embed_work (document_key, model_key, scope_id, state, holder, held_until)
values (%(document_key)s, %(model_key)s, %(scope_id)s, 'processing', 'reembed', now())
on conflict (document_key, model_key) do update
  set state = 'processing', holder = 'reembed', held_until = now()
where embed_work.state = 'pending'

-- name: failed_fills
-- Documents that were given up for a model, and why.
select d.document_id, w.attempts, w.error
from kb.embed_work w join kb.document d using (document_key)
where w.scope_id = %(scope_id)s and w.model_key = %(model_key)s and w.state = 'failed'
order by w.document_key limit %(limit)s

-- name: retry_fills
update kb.embed_work set state = 'pending', attempts = 0, error = ''
where scope_id = %(scope_id)s and model_key = %(model_key)s and state = 'failed'

-- name: has_vector_index
select kb.has_ann(%(model_key)s::int, %(scope_id)s::int)

-- name: backfill_documents
-- Documents of open scopes whose passages lack vectors of the shadow, or of the live model; scope
-- by scope, those that are found now.
select s.name as scope, d.document_id
from kb.generation g
join kb.scope s using (scope_id)
join kb.document d using (scope_id)
join kb.version v on v.document_key = d.document_key and v.version = d.latest_version
where s.closed_at is null and d.state = 'indexed' and exists (
  select from kb.passage p join kb.version o using (version_key)
  where o.document_key = d.document_key and not (
    exists (select from kb.embedding e
      where e.model_key = g.live_key and e.passage_key = p.passage_key offset 0)
    and (g.beside_is is distinct from 'shadow' or exists (select from kb.embedding e
      where e.model_key = g.beside_key and e.passage_key = p.passage_key offset 0))))
  and not exists (select from kb.embed_work f where f.document_key = d.document_key
    and f.state = 'failed' and f.model_key in (g.live_key, g.beside_key))
order by g.beside_since nulls first, s.scope_id, d.document_key limit %(limit)s

-- name: sample_headings
-- Passages found now, spread by their hashes, of documents open to everyone in the scope or not.
select p.passage_id, p.heading_path, p.text, p.context, v.title, d.document_id, v.version,
  p.content_hash
from kb.passage p
join kb.lex l using (passage_key)
join kb.version v using (version_key)
join kb.document d using (document_key)
where p.scope_id = %(scope_id)s and (l.valid_until is null or l.valid_until > now())
order by p.content_hash limit %(size)s
