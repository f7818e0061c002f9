-- Every process asks at its start whether the schema is the one it knows; in a deployment those of
-- the pipeline and of the reading side hold no owner's connection to ask with.
grant select on kb.schema_migration to kb_pipeline, kb_app;

-- Scopes that jobs name: the one that an upload is to make is not in kb.scope yet, and whoever may
-- see every scope may see its job.
create function kb.scopes_of_jobs() returns setof text
language sql stable security definer set search_path = kb, pg_temp as $$
  select distinct scope from kb.job
$$;
revoke execute on function kb.scopes_of_jobs() from public;
grant execute on function kb.scopes_of_jobs() to kb_app;
