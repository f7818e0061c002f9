-- Stages that ask a language model, both off by default: a body written anew by a model (convert),
-- and what a model says about sections (enrich). What each call took is kept for the bill.

alter table kb.stage_result drop constraint stage_result_stage_check;
alter table kb.stage_result add constraint stage_result_stage_check check (stage in (
  'acquire', 'parse', 'language', 'scan', 'convert', 'chunk', 'embed', 'index', 'enrich',
  'supersede'));

-- Who wrote the stored body anew; null: it is what parsing gave. The gate does not ask: a body that
-- changes loses its clearance, whoever wrote it (`kb.drop_clearance`).
alter table kb.version add column converted_by text;
grant update (converted_by) on kb.version to kb_pipeline;
grant select (converted_by) on kb.version to kb_app;

-- What a model said about a section: beside the text, never in it. A row is found again by the
-- hash of all that was sent (`node_hash`), so that an unchanged section is asked about once.
create table kb.enrichment (
  version_key   bigint not null references kb.version on delete cascade,
  node_id       text not null,
  scope_id      int not null references kb.scope,
  depth         int not null check (depth >= 0),
  byte_start    int not null check (byte_start >= 0),
  byte_end      int not null check (byte_end >= byte_start),
  body_digest   text not null check (body_digest ~ '^[0-9a-f]{64}$'),
  node_hash     text not null check (node_hash ~ '^[0-9a-f]{64}$'),
  enricher      text not null,
  notes         json not null,
  made_at       timestamptz not null default now(),
  primary key (version_key, node_id)
);
create index enrichment_known on kb.enrichment (scope_id, node_hash);
comment on table kb.enrichment is
  'Summary, entities and keywords of a section, made by a model; span in the body, UTF-8 bytes.';
comment on column kb.enrichment.notes is
  'json, not jsonb: content of a document, which forgetting a name elsewhere leaves alone.';
alter table kb.enrichment enable row level security;
create policy pipeline on kb.enrichment to kb_pipeline using (true) with check (true);
create policy reader on kb.enrichment for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]) and kb.is_cleared(version_key));
grant select, insert, update, delete on kb.enrichment to kb_pipeline;
grant select on kb.enrichment to kb_app;

-- One row a call. What was sent is named by digest in kb.disclosure_log, under the same correlation
-- id; nothing here names a document, so the sums outlive an erasure.
create table kb.model_call (
  call_id        bigint generated always as identity primary key,
  at             timestamptz not null default clock_timestamp(),
  scope_id       int not null references kb.scope,
  correlation_id text not null check (correlation_id <> ''),
  purpose        text not null check (purpose in ('convert', 'enrich')),
  destination    text not null check (destination <> ''),
  model          text not null check (model <> ''),
  prompt         text not null check (prompt <> ''),
  outcome        text not null check (outcome <> ''),
  prompt_tokens  int check (prompt_tokens >= 0),
  answer_tokens  int check (answer_tokens >= 0),
  money          numeric(18, 9) check (money >= 0),
  currency       text check (length(currency) between 1 and 8),
  duration_s     real not null,
  check ((money is null) = (currency is null))
);
create index model_call_scope on kb.model_call (scope_id, at);
comment on table kb.model_call is 'What convert and enrich asked of a model: tokens and money.';
comment on column kb.model_call.money is 'By the price that was set then; null: none was.';
create trigger model_call_append_only before update or delete on kb.model_call
  for each row execute function kb.refuse_change();
alter table kb.model_call enable row level security;
create policy pipeline on kb.model_call to kb_pipeline using (true) with check (true);
create policy reader on kb.model_call for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]));
grant select, insert on kb.model_call to kb_pipeline;
grant select on kb.model_call to kb_app;

-- Two more purposes that texts leave for.
alter table kb.disclosure_log drop constraint disclosure_log_purpose_check;
do $$
declare
  part regclass;
begin
  -- Partitions hold a copy of the constraint as their own beside the one they inherit.
  for part in
    select inhrelid::regclass from pg_inherits where inhparent = 'kb.disclosure_log'::regclass
  loop
    execute format('alter table %s drop constraint if exists disclosure_log_purpose_check', part);
  end loop;
end $$;
alter table kb.disclosure_log add constraint disclosure_log_purpose_check check (
  purpose in ('answer', 'embed_question', 'embed_passages', 'parse', 'second_opinion', 'convert',
    'enrich'));

-- `kb explain` names the two stages in their order.
create or replace function kb.explain_version(p_version_key bigint) returns jsonb
language sql stable security definer set search_path = kb, pg_temp as $$
  select jsonb_build_object(
    'verdict', v.verdict, 'verdict_at', v.verdict_at, 'verdict_actor', v.verdict_actor,
    'rule_pack', v.rule_pack, 'verdict_digest', v.verdict_digest,
    'verdict_body_digest', v.verdict_body_digest, 'language_confidence', v.language_confidence,
    'findings', (select count(*) from kb.finding f where f.version_key = v.version_key),
    'stages', (select coalesce(jsonb_agg(jsonb_build_object('stage', r.stage,
        'duration_s', r.duration_s, 'finished_at', r.finished_at, 'counts', r.counts)
        order by array_position(array['acquire', 'parse', 'language', 'scan', 'convert', 'chunk',
          'embed', 'index', 'enrich', 'supersede'], r.stage)), '[]')
      from kb.stage_result r where r.version_key = v.version_key))
  from kb.version v
  where v.version_key = p_version_key and v.scope_id = any (kb.allowed_scope_ids())
    and kb.is_cleared(v.version_key)
$$;
