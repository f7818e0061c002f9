-- Citations people keep; run as kb_app under row level security, or as the pipeline for re-checks.
-- Audiences are those of the cited document: who may not read it sees no citation of it.

-- name: keep_citation
insert into kb.citation (citation_id, scope_id, holder, note, correlation_id, document_key, version,
  digest, passage_id, page, char_start, char_end, body_start, body_end, quote, prefix, suffix,
  created_by, status, version_now, place, checked_at, checked_against)
select %(citation_id)s, s.scope_id, %(holder)s, %(note)s, %(correlation_id)s, d.document_key,
  %(version)s, %(digest)s, %(passage_id)s, %(page)s, %(char_start)s, %(char_end)s,
  %(body_start)s, %(body_end)s, %(quote)s, %(prefix)s, %(suffix)s, %(created_by)s, %(status)s,
  %(version_now)s, %(place)s::jsonb, %(checked_at)s, %(checked_against)s
from kb.scope s join kb.document d using (scope_id)
where s.name = %(scope)s and d.document_id = %(document_id)s
returning citation_id

-- name: kept_citations
-- Citations of a scope in the order they were kept, each with its document's name.
select c.citation_id, s.name as scope, c.holder, c.note, c.correlation_id, d.document_id,
  c.version, c.digest, c.passage_id, c.page, c.char_start, c.char_end, c.body_start, c.body_end,
  c.quote, c.prefix, c.suffix, c.created_by, c.created_at, c.status, c.version_now, c.place,
  c.checked_at, c.checked_against
from kb.citation c
join kb.scope s using (scope_id)
left join kb.document d on d.document_key = c.document_key
where s.name = %(scope)s
  and (%(everyone)s or d.audiences is null or d.audiences = '{}'
    or d.audiences && %(audiences)s::text[])
  and (%(holder)s::text is null or c.holder = %(holder)s)
  and (%(document_id)s::text is null or d.document_id = %(document_id)s)
  and (%(status)s::text is null or c.status = %(status)s)
  and (%(citation_id)s::text is null or c.citation_id = %(citation_id)s)
  and (%(after)s::text is null or (c.created_at, c.citation_id) > (
    select a.created_at, a.citation_id from kb.citation a where a.citation_id = %(after)s))
order by c.created_at, c.citation_id limit %(limit)s

-- name: due_citations
-- Citations whose document holds another version or body than at their last check.
select c.citation_id, s.name as scope, d.document_id, c.version, c.digest, c.passage_id, c.page,
  c.char_start, c.char_end, c.body_start, c.body_end, c.quote, c.prefix, c.suffix, c.status
from kb.citation c
join kb.scope s using (scope_id)
left join kb.document d on d.document_key = c.document_key
left join lateral (
  select v.version || ':' || v.body_digest as against
  from kb.validity x join kb.version v on v.version_key = x.version_key
  where x.document_key = c.document_key and upper_inf(x.known) and x.valid @> now()
    and kb.is_cleared(v.version_key) limit 1) cur on true
where (%(scope)s::text is null or s.name = %(scope)s) and c.quote <> ''
  and c.checked_against is distinct from coalesce(cur.against, '-')
order by c.document_key, c.citation_id limit %(limit)s

-- name: text_now
-- What a document says now, and what names this state of it; no row where nothing holds.
select v.version, v.digest, b.body, b.pages, v.version || ':' || v.body_digest as against
from kb.scope s
join kb.document d using (scope_id)
join kb.validity x on x.document_key = d.document_key and upper_inf(x.known) and x.valid @> now()
join kb.version v on v.version_key = x.version_key
join kb.parsed b on b.version_key = v.version_key
where s.name = %(scope)s and d.document_id = %(document_id)s and kb.is_cleared(v.version_key)

-- name: text_of_version
-- What a version of a document says, whether or not it holds now.
select v.version, v.digest, b.body, b.pages, v.version || ':' || v.body_digest as against
from kb.scope s
join kb.document d using (scope_id)
join kb.version v on v.document_key = d.document_key and v.version = %(version)s
join kb.parsed b on b.version_key = v.version_key
where s.name = %(scope)s and d.document_id = %(document_id)s and kb.is_cleared(v.version_key)

-- name: record_check
update kb.citation set status = %(status)s, version_now = %(version_now)s,
  place = %(place)s::jsonb, checked_at = %(checked_at)s, checked_against = %(checked_against)s
where citation_id = %(citation_id)s

-- name: drop_citation
delete from kb.citation c using kb.scope s
where c.citation_id = %(citation_id)s and s.scope_id = c.scope_id and s.name = %(scope)s
returning c.citation_id

-- name: count_citations
-- How many citations a scope (null: all) has, by status.
select c.status, count(*) from kb.citation c join kb.scope s using (scope_id)
where %(scope)s::text is null or s.name = %(scope)s group by 1
