-- What answering asks of the retrieval tables beside the search itself; run as kb_app.

-- name: word_frequencies
-- In how many passages of the scopes each lexeme stands, and how many passages they have, as last
-- counted. The row with a null lexeme holds the latter.
select t.lexeme, sum(t.df)::bigint
from kb.term t join kb.scope s using (scope_id)
where s.name = any (%(scopes)s) and t.lexeme = any (%(lexemes)s::int[])
group by 1
union all
select null, coalesce(sum(l.counted), 0)::bigint
from kb.lexicon l join kb.scope s using (scope_id) where s.name = any (%(scopes)s)
