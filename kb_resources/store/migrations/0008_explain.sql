-- What the ledger knows about a published version, for `kb explain`: the verdict it passed with
-- and what each stage took. The reading role may not read those tables; it gets these columns of
-- a version that is cleared and in one of its scopes, and nothing of any other.

create function kb.explain_version(p_version_key bigint) returns jsonb
language sql stable security definer set search_path = kb, pg_temp as $$
  select jsonb_build_object(
    'verdict', v.verdict, 'verdict_at', v.verdict_at, 'verdict_actor', v.verdict_actor,
    'rule_pack', v.rule_pack, 'verdict_digest', v.verdict_digest,
    'verdict_body_digest', v.verdict_body_digest, 'language_confidence', v.language_confidence,
    'findings', (select count(*) from kb.finding f where f.version_key = v.version_key),
    'stages', (select coalesce(jsonb_agg(jsonb_build_object('stage', r.stage,
        'duration_s', r.duration_s, 'finished_at', r.finished_at, 'counts', r.counts)
        order by array_position(array['acquire', 'parse', 'language', 'scan', 'chunk', 'embed',
          'index', 'supersede'], r.stage)), '[]')
      from kb.stage_result r where r.version_key = v.version_key))
  from kb.version v
  where v.version_key = p_version_key and v.scope_id = any (kb.allowed_scope_ids())
    and kb.is_cleared(v.version_key)
$$;
revoke all on function kb.explain_version from public;
grant execute on function kb.explain_version to kb_app;
