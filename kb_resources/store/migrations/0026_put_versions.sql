-- Several versions in one call, each with the outcome it would have alone. A put fails for itself:
-- its subtransaction is rolled back and its SQLSTATE reported, the others go on. What is not about
-- one document (the server stops, a disk is full, a time limit) ends the call.
--
-- Arrays by version, in the order of the puts; then ends in arrays of all of them: p_readers in
-- p_audiences, p_rows in p_ordinals, p_bm and p_ends, and p_ends in p_keys, as in kb.put_version.
create function kb.put_versions(
  p_version_keys bigint[], p_valid_from timestamptz[], p_readers int[], p_audiences text[],
  p_model_keys int[], p_analyzers text[], p_averages real[], p_rows int[], p_ordinals int[],
  p_bm sparsevec[], p_ends int[], p_keys int[]
) returns table (
  state text, passages int, carried int, failure text, message text, hint text
) language plpgsql as $$
declare
  reader int := 0;
  line int := 0;
  key int := 0;
  ends int[];
begin
  -- In one order for all callers, so that two of them wait for each other and do not deadlock.
  perform pg_advisory_xact_lock(hashtextextended('kb.document', d.document_key)) from (
    select distinct document_key from kb.version where version_key = any (p_version_keys)
    order by document_key offset 0) d;
  for i in 1 .. coalesce(cardinality(p_version_keys), 0) loop
    ends := array(select e - key
      from unnest(p_ends[line + 1 : p_rows[i]]) with ordinality u (e, nth) order by nth);
    begin
      select r.state, r.passages, r.carried, null, null, null
      into state, passages, carried, failure, message, hint
      from kb.put_generations(p_version_keys[i], p_valid_from[i],
        p_audiences[reader + 1 : p_readers[i]], p_model_keys[i], p_analyzers[i], p_averages[i],
        p_ordinals[line + 1 : p_rows[i]], p_bm[line + 1 : p_rows[i]], ends,
        p_keys[key + 1 : coalesce(p_ends[p_rows[i]], 0)]) r;
    exception when others then
      get stacked diagnostics failure = returned_sqlstate, message = message_text,
        hint = pg_exception_hint;
      if failure !~ '^(KB|22|23|40|55)' then raise; end if;
      state := null; passages := null; carried := null;
    end;
    return next;
    reader := p_readers[i];
    line := p_rows[i];
    key := coalesce(p_ends[line], 0);
  end loop;
end $$;
