-- What ought to agree: ledger, retrieval tables, staging, Dagster's partitions.

-- name: drifted_rows
-- Search rows whose scope or readers are not those of their document.
select d.document_key, s.name as scope, d.document_id
from kb.document d join kb.scope s using (scope_id)
where exists (
  select from kb.version v join kb.passage p using (version_key)
  left join kb.lex l using (passage_key)
  where v.document_key = d.document_key and (p.scope_id <> d.scope_id
    or l.scope_id <> d.scope_id or l.audiences <> d.audiences))
or exists (
  select from kb.version v join kb.passage p using (version_key) join kb.embedding e
    using (passage_key)
  where v.document_key = d.document_key
    and (e.scope_id <> d.scope_id or e.audiences <> d.audiences))
order by 1

-- name: mend_lexical_readers
update kb.lex l set audiences = d.audiences
from kb.passage p join kb.version v using (version_key) join kb.document d using (document_key)
where d.document_key = %(document_key)s and l.passage_key = p.passage_key
  and l.audiences <> d.audiences

-- name: mend_vector_readers
update kb.embedding e set audiences = d.audiences
from kb.passage p join kb.version v using (version_key) join kb.document d using (document_key)
where d.document_key = %(document_key)s and e.passage_key = p.passage_key
  and e.audiences <> d.audiences

-- name: drifted_validity
-- Documents with search rows that hold at other times than the ledger says.
select d.document_key, s.name as scope, d.document_id
from kb.document d join kb.scope s using (scope_id)
where exists (
  select from kb.version v
  cross join lateral kb.version_intervals(v.version_key) i
  join kb.passage p using (version_key)
  join kb.lex l using (passage_key)
  left join kb.embedding e using (passage_key)
  where v.document_key = d.document_key and (
    (l.valid_from, l.valid_until, l.earlier)
      is distinct from (i.valid_from, i.valid_until, i.earlier)
    or e.passage_key is not null and (e.valid_from, e.valid_until, e.earlier)
      is distinct from (i.valid_from, i.valid_until, i.earlier)))
order by 1

-- name: mend_validity
select kb.sync_validity(%(document_key)s::bigint)

-- name: unpublished_documents
-- Documents said to be indexed of which search finds nothing.
select d.document_key, s.name as scope, d.document_id
from kb.document d join kb.scope s using (scope_id)
where d.state = 'indexed' and not exists (
  select from kb.version v join kb.passage p using (version_key) join kb.lex l using (passage_key)
  where v.document_key = d.document_key and v.version = d.latest_version)
order by 1

-- name: wrongly_published
-- Documents that were removed or erased and that search would still find.
select d.document_key, s.name as scope, d.document_id
from kb.document d join kb.scope s using (scope_id)
where d.state in ('removed', 'erased') and exists (
  select from kb.validity x where x.document_key = d.document_key
    and upper_inf(x.known) and upper_inf(x.valid))
order by 1

-- name: drop_stale_staging
-- Staged rows of versions that no run will publish any more: theirs is not the newest version.
with stale as (
  select v.version_key from kb.version v join kb.document d using (document_key)
  where v.version is distinct from d.latest_version
    and v.created_at < now() - interval '1 day'
), c as (
  delete from kb.staged_chunk where version_key in (select version_key from stale) returning 1
), e as (
  delete from kb.staged_vector where version_key in (select version_key from stale) returning 1
)
select (select count(*) from c) + (select count(*) from e)

-- name: source_of_bytes
-- Where bytes of a scope came from, of documents that hold them as their newest version.
select d.source_uri from kb.version v join kb.document d using (document_key)
join kb.scope s on s.scope_id = v.scope_id
where s.name = %(scope)s and v.digest = %(digest)s and v.version = d.latest_version
order by d.document_key

-- name: partition_keys
select s.name, d.document_id from kb.document d join kb.scope s using (scope_id)
where d.state <> 'erased' order by d.document_key
