-- Documents as files: what is published now, with its history.

-- name: export_page
-- Documents of a scope that search finds now, all or those named, a page at a time by their keys.
select d.document_key, d.document_id, d.source_kind, d.origin, d.audiences, d.state, v.version_key,
  v.version, v.digest, v.body_digest, v.media_type, v.title, v.language, v.verdict, v.rule_pack,
  p.body, p.parser, p.metadata,
  (select coalesce(jsonb_agg(distinct m.model_id), '[]') from kb.model m
    where exists (select from kb.embedding e join kb.passage g using (passage_key)
      where g.version_key = v.version_key and e.model_key = m.model_key)) as models,
  (select jsonb_agg(jsonb_build_object('version', o.version, 'digest', o.digest,
      'valid_from', lower(x.valid), 'valid_until', upper(x.valid)) order by lower(x.valid))
    from kb.validity x join kb.version o using (version_key)
    where x.document_key = d.document_key and upper_inf(x.known)) as intervals
from kb.document d
join kb.scope s using (scope_id)
join kb.version v on v.document_key = d.document_key and v.version = d.latest_version
join kb.parsed p using (version_key)
where s.name = %(scope)s and d.state = 'indexed' and d.document_key > %(after)s
  and (%(only)s::text[] is null or d.document_id = any (%(only)s))
  and kb.is_cleared(v.version_key)
order by d.document_key limit %(limit)s

-- name: export_lifecycle
select lifecycle_id, version, event, actor, details, at, previous_hash, hash
from kb.lifecycle where document_key = %(document_key)s order by lifecycle_id
