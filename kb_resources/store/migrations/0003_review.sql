-- Review of quarantined versions: people decide, with name and reason, through one function.

create table kb.review (
  review_id     bigint generated always as identity primary key,
  version_key   bigint not null references kb.version on delete cascade,
  scope_id      int not null references kb.scope,
  decision      text not null check (decision in ('release', 'reject')),
  actor         text not null check (actor <> ''),
  reason        text not null check (length(reason) between 1 and 2000),
  rules         text[] not null,
  decided_at    timestamptz not null default clock_timestamp()
);
create index review_version on kb.review (version_key);
comment on table kb.review is
  'What people decided about quarantined versions, and which rules had spoken then.';

-- Release clears the version for the bytes and body it holds; reject blocks it. Only what waits for
-- review can be decided, so that a decision is never taken twice or for something else.
create function kb.decide_review(
  p_version_key bigint, p_decision text, p_actor text, p_reason text
) returns void language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  v kb.version;
  v_rules text[];
begin
  select * into v from kb.version where version_key = p_version_key for update;
  if not found or v.verdict is distinct from 'quarantine'
     or v.state is distinct from 'quarantined' then
    raise exception 'this version does not wait for review'
      using errcode = 'KB001', hint = 'List what waits with kb review list.';
  end if;
  select coalesce(array_agg(distinct rule_id order by rule_id), '{}') into v_rules
  from kb.finding where version_key = p_version_key;
  insert into kb.review (version_key, scope_id, decision, actor, reason, rules)
  values (p_version_key, v.scope_id, p_decision, p_actor, p_reason, v_rules);
  update kb.version set
    verdict = case p_decision when 'release' then 'clean' else 'block' end,
    verdict_digest = digest, verdict_body_digest = body_digest,
    verdict_actor = p_actor, verdict_at = now(),
    state = case p_decision when 'release' then null else 'blocked' end,
    reason = case p_decision when 'release' then '' else p_reason end
  where version_key = p_version_key;
  update kb.stage_result set
    state = case p_decision when 'release' then null else 'blocked' end,
    reason = case p_decision when 'release' then '' else p_reason end,
    details = details || jsonb_build_object('verdict',
      case p_decision when 'release' then 'clean' else 'block' end, 'decided_by', p_actor)
  where version_key = p_version_key and stage = 'scan';
  insert into kb.lifecycle (scope_id, document_key, version, event, actor, details)
  values (v.scope_id, v.document_key, v.version,
    case p_decision when 'release' then 'released' else 'rejected' end, p_actor,
    jsonb_build_object('reason', p_reason, 'rules', v_rules));
end $$;
revoke all on function kb.decide_review from public;
grant execute on function kb.decide_review to kb_pipeline;
grant select on kb.review to kb_pipeline;

alter table kb.review enable row level security;
create policy pipeline on kb.review to kb_pipeline using (true) with check (true);
