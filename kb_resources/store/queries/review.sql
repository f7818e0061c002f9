-- name: waiting_reviews
-- Quarantined versions of a scope that are the newest of their document, oldest first.
select s.name as scope, d.document_id, v.version, v.version_key, v.digest, v.body_digest,
  v.title, d.origin, v.language,
  v.reason, v.verdict_at as since,
  (select count(*) from kb.finding f where f.version_key = v.version_key) as findings
from kb.version v
join kb.document d on d.document_key = v.document_key and d.latest_version = v.version
join kb.scope s on s.scope_id = v.scope_id
where s.name = %(scope)s and v.state = 'quarantined' and d.state not in ('removed', 'erased')
order by v.verdict_at, v.version_key

-- name: decide_review
select kb.decide_review(%(version_key)s, %(decision)s, %(actor)s, %(reason)s)
