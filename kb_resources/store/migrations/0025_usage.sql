-- What runs took: computing time, tokens by model, and money where a price was known at the time.
-- One row for each step, scope and model of a run; rows without a model carry the computing time.
-- No document and no person is named here; what answers took is in kb.answer_log.

create table kb.usage (
  usage_id   bigint generated always as identity primary key,
  at         timestamptz not null default clock_timestamp(),
  scope_id   int not null references kb.scope on delete cascade,
  run_id     text not null check (run_id <> ''),
  cause      text not null check (cause <> ''),
  stage      text not null check (stage <> ''),
  documents  int not null default 0 check (documents >= 0),
  cpu_s      double precision not null default 0 check (cpu_s >= 0),
  model      text check (model <> ''),
  tokens     bigint not null default 0 check (tokens >= 0),
  money      numeric(18, 9) check (money >= 0),
  currency   text check (length(currency) between 1 and 8),
  check ((money is null) = (currency is null)),
  check (model is not null or tokens = 0)
);
create index usage_of_run on kb.usage (run_id);
create index usage_of_scope on kb.usage (scope_id, at);
comment on table kb.usage is 'What the steps of runs took, by scope and model.';
comment on column kb.usage.cpu_s is 'Seconds of computing, those of parsing children included; in '
  'a run over several scopes shared out by documents.';
comment on column kb.usage.tokens is 'As this side counted them, with prefix and specials; the '
  'endpoint''s count where a chat model says it.';
comment on column kb.usage.money is 'By the price that was set then; null: no price was known.';

alter table kb.usage enable row level security;
create policy pipeline on kb.usage to kb_pipeline using (true) with check (true);
create policy reader on kb.usage for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]));
grant select, insert on kb.usage to kb_pipeline;
grant select on kb.usage to kb_app;
