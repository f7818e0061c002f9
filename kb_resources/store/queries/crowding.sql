-- name: canary_passages
-- Passages found now of versions that were there before :since, spread by their hashes.
select p.passage_id, p.heading_path, p.text, p.context, v.title, d.document_id, v.version,
  p.content_hash
from kb.passage p
join kb.lex l using (passage_key)
join kb.version v using (version_key)
join kb.document d using (document_key)
where p.scope_id = %(scope_id)s and v.created_at < %(since)s
  and (l.valid_until is null or l.valid_until > %(now)s)
order by p.content_hash limit %(size)s

-- name: new_passages
-- Passages found now whose text their document did not hold before :since; one row each.
select d.document_id, p.passage_id, d.origin
from kb.version v
join kb.passage p using (version_key)
join kb.lex l using (passage_key)
join kb.document d using (document_key)
where v.scope_id = %(scope_id)s and v.created_at >= %(since)s
  and (l.valid_until is null or l.valid_until > %(now)s)
  and not exists (select from kb.version o join kb.passage q using (version_key)
    where o.document_key = v.document_key and o.created_at < %(since)s
      and q.content_hash = p.content_hash)

-- name: found_passages
-- How many passages of a scope are found now.
select count(*) from kb.lex
where scope_id = %(scope_id)s and (valid_until is null or valid_until > %(now)s)
