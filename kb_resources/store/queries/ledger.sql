-- name: ensure_scope
-- Returns the scope, made with the given settings where it is new.
with made as (
  insert into kb.scope (name, settings) values (%(name)s, %(settings)s)
  on conflict (name) do nothing
  returning scope_id, name, settings, closed_at
)
select scope_id, name, settings, closed_at from made
union all
select scope_id, name, settings, closed_at from kb.scope where name = %(name)s
limit 1

-- name: get_scope
select scope_id, name, settings, closed_at from kb.scope where name = %(name)s

-- name: list_scopes
select name, title, created_at, closed_at from kb.scope order by name

-- name: register_document
-- A known document keeps its state; what the caller says about it now is taken over, but not
-- against a decision about its audiences. Nothing changes for a caller whom it is hidden from:
-- `reads_all` is false and none of `readers` is among its audiences. The condition is evaluated on
-- the locked row, so that no registration in between is overlooked.
insert into kb.document as d (scope_id, document_id, source_kind, source_uri, origin, audiences,
  trusted_by, language_hint, requested_valid_from, supersedes)
values (%(scope_id)s, %(document_id)s, %(source_kind)s, %(source_uri)s, %(origin)s, %(audiences)s,
  %(trusted_by)s, %(language_hint)s, %(valid_from)s, %(supersedes)s)
on conflict (scope_id, document_id) do update set
  source_kind = excluded.source_kind, source_uri = excluded.source_uri, origin = excluded.origin,
  audiences = case when d.audiences_set_by is null then excluded.audiences else d.audiences end,
  trusted_by = excluded.trusted_by, language_hint = excluded.language_hint,
  requested_valid_from = excluded.requested_valid_from, supersedes = excluded.supersedes, updated_at = now()
where (%(reads_all)s or d.audiences = '{}' or d.audiences && %(readers)s::text[]) and ((d.source_kind, d.source_uri, d.origin, d.audiences, d.supersedes)
    is distinct from (excluded.source_kind, excluded.source_uri, excluded.origin,
      excluded.audiences, excluded.supersedes)
  or (d.trusted_by, d.language_hint, d.requested_valid_from)
    is distinct from (excluded.trusted_by, excluded.language_hint, excluded.requested_valid_from))

-- name: document_hidden_from
-- Whether a document of this id is for others; locked, so that its readers stay what they are.
-- One that stands exactly as the caller wants it is left as it is: a job taken up again made it.
select not (audiences = '{}' or audiences && %(readers)s::text[])
  and (source_uri, audiences) is distinct from (%(source_uri)s, %(audiences)s::text[]) as hidden
from kb.document where scope_id = %(scope_id)s and document_id = %(document_id)s for update

-- name: load_documents
-- Everything a stage needs to know about documents, with the newest version's row beside.
select s.scope_id, s.name as scope, s.settings, d.document_key, d.document_id, d.source_kind,
  d.source_uri, d.origin, d.audiences, d.trusted_by, d.language_hint, d.requested_valid_from,
  d.supersedes, d.state, d.reason, d.attempts, d.settled_fingerprint, d.latest_version,
  v.version_key, v.digest, v.body_digest, v.converted_by, v.media_type, v.size_bytes, v.name, v.title,
  v.language, v.verdict, v.state as version_state,
  v.verdict = 'clean' and v.verdict_digest = v.digest and v.verdict_body_digest = v.body_digest
    and coalesce(v.state, 'indexed') = 'indexed' as cleared,
  exists (select 1 from kb.validity x where x.version_key = v.version_key
    and upper_inf(x.known) and upper_inf(x.valid)) as current,
  live.model_id as live_model, beside.model_id as beside_model, g.beside_is
from unnest(%(scopes)s::text[], %(documents)s::text[]) with ordinality k (scope, document_id, nth)
join kb.scope s on s.name = k.scope
join kb.document d on d.scope_id = s.scope_id and d.document_id = k.document_id
left join kb.version v on v.document_key = d.document_key and v.version = d.latest_version
left join kb.generation g on g.scope_id = s.scope_id
left join kb.model live on live.model_key = g.live_key
left join kb.model beside on beside.model_key = g.beside_key
order by k.nth

-- name: lock_documents
-- In the order of their keys, so that two who lock several wait for each other only one way.
select pg_advisory_xact_lock(hashtextextended('kb.document', k.document_key))
from (select document_key from unnest(%(document_keys)s::bigint[]) d (document_key)
  order by document_key) k

-- name: latest_versions
select document_key, latest_version from kb.document where document_key = any (%(document_keys)s)

-- name: lock_bytes
select pg_advisory_xact_lock(hashtextextended('kb.bytes ' || b.digest, b.scope_id))
from (select digest, scope_id
  from unnest(%(digests)s::text[], %(scope_ids)s::int[]) g (digest, scope_id)
  order by scope_id, digest) b

-- name: set_document_state
update kb.document set state = %(state)s, reason = %(reason)s, duplicate_of = %(duplicate_of)s,
  settled_fingerprint = %(settled)s, attempts = %(attempts)s, updated_at = now()
where document_key = %(document_key)s

-- name: touch_settled
update kb.document set settled_fingerprint = %(settled)s where document_key = %(document_key)s

-- name: find_same_bytes
-- For each of these, the document of its scope that its bytes are, or are about to be, published
-- under for the same audiences, if any. Where they came to another end twice already, the bytes are
-- to blame and not a name: then every copy goes its own way at once. Its row stays locked, so that it
-- cannot end otherwise before the one that asks is known to repeat it.
select g.document_key, f.document_key, f.document_id
from unnest(%(document_keys)s::bigint[], %(digests)s::text[]) g (document_key, digest)
join kb.document a on a.document_key = g.document_key,
lateral (
  select d.document_key, d.document_id
  from kb.version v join kb.document d on d.document_key = v.document_key
    and d.latest_version = v.version
  where v.scope_id = a.scope_id and v.digest = g.digest and d.document_key <> g.document_key
    and d.audiences = a.audiences and d.duplicate_of is null
    and (d.state = 'indexed' or d.state = 'pending' and 2 > (
      select count(*) from kb.version w join kb.document e on e.document_key = w.document_key
        and e.latest_version = w.version
      where w.scope_id = a.scope_id and w.digest = g.digest
        and e.state not in ('pending', 'indexed', 'duplicate', 'removed', 'erased')))
  order by d.state <> 'indexed', d.document_key limit 1
  for share of d) f

-- name: repeating_documents
-- Documents that repeat one of these.
select s.name as scope, d.document_id
from unnest(%(scopes)s::text[], %(documents)s::text[]) k (scope, document_id)
join kb.scope s on s.name = k.scope
join kb.document f on f.scope_id = s.scope_id and f.document_id = k.document_id
join kb.document d on d.duplicate_of = f.document_key
order by d.document_key

-- name: woken_documents
-- Those of these that have to be published on their own: pending, and never read so far.
select s.name as scope, d.document_id
from unnest(%(scopes)s::text[], %(documents)s::text[]) k (scope, document_id)
join kb.scope s on s.name = k.scope
join kb.document d on d.scope_id = s.scope_id and d.document_id = k.document_id
where d.state = 'pending' and d.latest_version is null
order by d.document_key

-- name: wake_duplicates
-- Their first document no longer holds the bytes: each has to be published on its own.
update kb.document set state = 'pending', reason = '', duplicate_of = null,
  settled_fingerprint = null, updated_at = now()
where duplicate_of = %(document_key)s
returning document_id

-- name: set_version_parsed
update kb.version set body_digest = %(body_digest)s, title = %(title)s,
  converted_by = %(converted_by)s, state = null, reason = ''
where version_key = %(version_key)s

-- name: set_version_state
update kb.version set state = %(state)s, reason = %(reason)s where version_key = %(version_key)s

-- name: save_parsed
insert into kb.parsed (version_key, scope_id, body, blocks, pages, coverage, metadata, parser)
values (%(version_key)s, %(scope_id)s, %(body)s, %(blocks)s, %(pages)s, %(coverage)s,
  %(metadata)s, %(parser)s)
on conflict (version_key) do update set body = excluded.body, blocks = excluded.blocks,
  pages = excluded.pages, coverage = excluded.coverage, metadata = excluded.metadata,
  parser = excluded.parser

-- name: save_extraction
insert into kb.extraction (version_key, scope_id, raw_text, hidden)
values (%(version_key)s, %(scope_id)s, %(raw_text)s, %(hidden)s)
on conflict (version_key) do update set raw_text = excluded.raw_text, hidden = excluded.hidden

-- name: purge_texts
-- P-06, P-46: of a blocked or refused version only digest, rule ids, spans and reason stay.
with p as (delete from kb.parsed where version_key = %(version_key)s),
  e as (delete from kb.extraction where version_key = %(version_key)s),
  c as (delete from kb.staged_chunk where version_key = %(version_key)s),
  n as (delete from kb.enrichment where version_key = %(version_key)s),
  t as (update kb.version set title = null where version_key = %(version_key)s)
select kb.purge_finding_texts(%(version_key)s)

-- name: blob_still_used
-- Whether another version of the scope may still need these bytes.
select exists (
  select 1 from kb.version where scope_id = %(scope_id)s and digest = %(digest)s
    and version_key <> %(version_key)s
    and coalesce(state, '') not in ('blocked', 'language_refused', 'erased')) as used

-- name: record_verdict
select kb.record_verdict(%(version_key)s, %(verdict)s, %(digest)s, %(body_digest)s,
  %(rule_pack)s, %(actor)s, %(findings)s)

-- name: load_findings
select rule_id, severity, part, place, byte_start, byte_end, excerpt, decoded, explanation
from kb.finding where version_key = %(version_key)s order by finding_id

-- name: stage_results
select version_key, stage, fingerprint, output, state, reason, counts, details
from kb.stage_result where version_key = any (%(version_keys)s) and stage = any (%(stages)s)

-- name: drop_stage_results
delete from kb.stage_result where version_key = %(version_key)s and stage = any (%(stages)s)

-- name: copy_staged_chunks
copy kb.staged_chunk (version_key, ordinal, scope_id, passage_id, context, heading_path, page,
  locator, byte_start, byte_end, char_start, char_end, content_hash, embed_hash, token_count)
from stdin

-- name: append_lifecycle
insert into kb.lifecycle (scope_id, document_key, version, event, actor, details)
values (%(scope_id)s, %(document_key)s, %(version)s, %(event)s, %(actor)s, %(details)s)

-- name: new_batch
insert into kb.batch (batch_id, actor, cause) values (%(batch_id)s, %(actor)s, %(cause)s)

-- name: add_batch_items
insert into kb.batch_item (batch_id, document_key)
select distinct %(batch_id)s, d.document_key
from unnest(%(scopes)s::text[], %(documents)s::text[]) k (scope, document_id)
join kb.scope s on s.name = k.scope
join kb.document d on d.scope_id = s.scope_id and d.document_id = k.document_id

-- name: batch_documents
select s.name as scope, d.document_id
from kb.batch_item b join kb.document d using (document_key) join kb.scope s using (scope_id)
where b.batch_id = %(batch_id)s order by d.document_key

-- name: select_documents
select s.name as scope, d.document_id
from kb.document d join kb.scope s using (scope_id)
where s.name = %(scope)s and d.state = any (%(states)s)
order by d.document_key limit %(limit)s

-- name: scope_states
select d.state, count(*) as documents
from kb.document d join kb.scope s using (scope_id) where s.name = %(scope)s group by d.state

-- name: scope_passages
select count(*) as passages, count(*) filter (where valid_until is null) as current
from kb.lex l join kb.scope s using (scope_id) where s.name = %(scope)s

-- name: oldest_pending
select min(d.updated_at) as since
from kb.document d join kb.scope s using (scope_id)
where s.name = %(scope)s and d.state = 'pending'

-- name: current_versions
-- Versions valid now of the named documents.
select d.document_key, d.document_id, v.version_key, v.version
from kb.document d
join kb.version v on v.document_key = d.document_key
join kb.validity x on x.version_key = v.version_key and upper_inf(x.known) and upper_inf(x.valid)
where d.scope_id = %(scope_id)s and d.document_id = any (%(documents)s)

-- name: list_documents
-- The reading side's list, newest first, page by page (cursor: created_at and key). A title shows
-- once the scan has read it and found nothing. `in_force` is the version that holds, whatever became
-- of the newest.
select d.document_id, s.name as scope, d.state, d.reason, d.source_kind, d.source_uri, d.origin,
  d.audiences, d.latest_version as version, v.digest, v.media_type, v.size_bytes,
  case when v.state not in ('quarantined', 'blocked', 'language_refused') then v.title end as title,
  v.language, d.created_at, d.updated_at, d.document_key,
  (select o.version from kb.validity x join kb.version o using (version_key)
    where x.document_key = d.document_key and upper_inf(x.known) and upper_inf(x.valid)) as in_force
from kb.document d
join kb.scope s using (scope_id)
left join kb.version v on v.document_key = d.document_key and v.version = d.latest_version
where s.name = %(scope)s
  and (%(everyone)s or d.audiences = '{}' or d.audiences && %(audiences)s)
  and (%(state)s::text is null or d.state = %(state)s)
  and (%(document_id)s::text is null or d.document_id = %(document_id)s)
  and (%(q)s::text is null or strpos(lower(concat_ws(' ',
    case when v.state not in ('quarantined', 'blocked', 'language_refused') then v.title end,
    d.origin, d.document_id)), lower(%(q)s)) > 0)
  and (%(before)s::bigint is null or d.document_key < %(before)s)
order by d.document_key desc limit %(limit)s

-- name: document_history
select v.version, v.digest, v.media_type, v.size_bytes,
  case when v.state not in ('quarantined', 'blocked', 'language_refused') then v.title end as title,
  v.language, v.state, v.reason, v.created_at,
  (select coalesce(jsonb_agg(jsonb_build_object('valid_from', lower(x.valid), 'valid_until',
      upper(x.valid)) order by lower(x.valid)), '[]')
    from kb.validity x where x.version_key = v.version_key and upper_inf(x.known)) as validity
from kb.version v join kb.document d using (document_key) join kb.scope s on s.scope_id = d.scope_id
where s.name = %(scope)s and d.document_id = %(document_id)s
order by v.version

-- name: document_lifecycle
select l.at, l.version, l.event, l.actor, l.details
from kb.lifecycle l join kb.document d using (document_key)
join kb.scope s on s.scope_id = d.scope_id
where s.name = %(scope)s and d.document_id = %(document_id)s
order by l.lifecycle_id

-- name: show_coverage
select p.coverage, p.metadata, p.parser, left(p.body, 2000) as preview
from kb.parsed p where p.version_key = %(version_key)s

-- name: published_counts
-- Passages, their lexical rows, vectors of the scope's live model and how many models that are,
-- current versions and the worst norm error.
select
  (select count(*) from kb.passage p where p.version_key = v.version_key) as passages,
  (select count(*) from kb.lex l join kb.passage p using (passage_key)
    where p.version_key = v.version_key) as lexical,
  e.vectors, e.models,
  case when kb.is_cleared(v.version_key) then 0 else 1 end as uncleared,
  (select count(*) from kb.validity x where x.document_key = v.document_key
    and upper_inf(x.known) and upper_inf(x.valid)) as current_versions,
  e.worst
from kb.version v,
lateral (select count(*) as vectors, count(distinct e.model_key) as models,
    coalesce(max(abs(l2_norm(e.vec) - 1)), 0) as worst
  from kb.embedding e join kb.passage p using (passage_key)
  join kb.generation g on g.scope_id = v.scope_id and g.live_key = e.model_key
  where p.version_key = v.version_key) e
where v.version_key = %(version_key)s

-- name: show_parsed
-- For readers: only what the gate has cleared shows (row level security of kb.parsed).
select p.coverage, p.metadata, left(p.body, 2000) as preview
from kb.parsed p
join kb.version v using (version_key)
join kb.document d on d.document_key = v.document_key and d.latest_version = v.version
join kb.scope s on s.scope_id = d.scope_id
where s.name = %(scope)s and d.document_id = %(document_id)s

-- name: scanned_otherwise
-- Blocked versions have no text left to scan; what is published comes first.
select s.name as scope, d.document_id
from kb.document d
join kb.scope s using (scope_id)
join kb.version v on v.document_key = d.document_key and v.version = d.latest_version
join kb.extraction e using (version_key)
where s.name = %(scope)s and v.verdict is not null and v.rule_pack <> %(rule_pack)s
  and d.state in ('indexed', 'quarantined', 'pending')
order by d.state <> 'indexed', d.document_key limit %(limit)s
