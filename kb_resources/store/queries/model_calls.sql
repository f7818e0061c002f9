-- What convert and enrich asked of a model, and the notes it made.

-- name: add_model_call
insert into kb.model_call (scope_id, correlation_id, purpose, destination, model, prompt, outcome,
  prompt_tokens, answer_tokens, money, currency, duration_s)
values (%(scope_id)s, %(correlation_id)s, %(purpose)s, %(destination)s, %(model)s, %(prompt)s,
  %(outcome)s, %(prompt_tokens)s, %(answer_tokens)s, %(money)s, %(currency)s,
  %(duration_s)s)

-- name: known_notes
-- Notes made of the same input in the scope before, whichever document it stood in.
select distinct on (node_hash) node_hash, notes
from kb.enrichment
where scope_id = %(scope_id)s and enricher = %(enricher)s and node_hash = any (%(hashes)s)
order by node_hash, made_at

-- name: drop_notes
delete from kb.enrichment where version_key = %(version_key)s

-- name: add_notes
insert into kb.enrichment (version_key, node_id, scope_id, depth, byte_start, byte_end, body_digest,
  node_hash, enricher, notes)
values (%(version_key)s, %(node_id)s, %(scope_id)s, %(depth)s, %(byte_start)s, %(byte_end)s,
  %(body_digest)s, %(node_hash)s, %(enricher)s, %(notes)s)

-- name: passage_notes
-- Notes on the sections around a passage, outermost first; none that were made of another body.
-- Run as kb_app: row level security shows those of cleared versions in the session's scopes.
select e.enricher, e.notes
from kb.enrichment e
join kb.version v on v.version_key = e.version_key and v.body_digest = e.body_digest
join kb.document d on d.document_key = v.document_key
join kb.scope s on s.scope_id = v.scope_id
where s.name = %(scope)s and d.document_id = %(document_id)s and v.version = %(version)s
  and e.byte_start <= %(byte_start)s and e.byte_end >= %(byte_end)s
order by e.depth
