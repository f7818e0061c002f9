-- Evaluations: runs over labelled questions with a row per question, and scratch scopes that a
-- labelled set is loaded into, searched, and dropped with. No question's text is kept.

create table kb.evaluation (
  run_id           text primary key check (run_id ~ '^[0-9a-f]{16}$'),
  scope_id         int references kb.scope on delete cascade,
  name             text not null check (length(name) between 1 and 200),
  questions_digest text not null check (questions_digest ~ '^[0-9a-f]{64}$'),
  half             text check (half in ('dev', 'test')),
  gain             text not null check (gain in ('binary', 'graded')),
  config           jsonb not null,
  figures          jsonb not null,
  ndcg_10          real check (ndcg_10 between 0 and 1),
  actor            text not null check (actor <> ''),
  at               timestamptz not null default clock_timestamp(),
  duration_s       real not null check (duration_s >= 0),
  accepted_at      timestamptz,
  accepted_by      text,
  check ((accepted_at is null) = (accepted_by is null))
);
create index evaluation_of_scope on kb.evaluation (scope_id, name, at desc);
comment on table kb.evaluation is 'One run over labelled questions; scope_id null: a labelled set '
  'loaded for the run alone.';
comment on column kb.evaluation.config is 'What was measured: model, analyzer, mode, asker.';
comment on column kb.evaluation.ndcg_10 is 'Over all answerable questions; null where there is none.';
comment on column kb.evaluation.accepted_at is
  'When somebody took the run as what later ones are held against.';

create table kb.evaluation_question (
  run_id       text not null references kb.evaluation on delete cascade,
  nth          int not null check (nth > 0),
  scope_id     int references kb.scope on delete cascade,
  question     text not null check (length(question) between 1 and 200),
  language     text not null,
  slice        text not null check (slice in
    ('paraphrase', 'exact', 'identifier', 'cross-lingual', 'unanswerable', 'other')),
  answerable   boolean not null,
  ndcg         real not null check (ndcg between 0 and 1),
  first        int check (first > 0),
  recall       real not null check (recall between 0 and 1),
  nothing      boolean not null,
  relevance    real check (relevance between 0 and 1),
  top          text[] not null,
  primary key (run_id, nth),
  unique (run_id, question)
);
comment on table kb.evaluation_question is
  'How one question went: its id in the file, rank of the first answer, documents on top.';

alter table kb.evaluation enable row level security;
alter table kb.evaluation_question enable row level security;
create policy pipeline on kb.evaluation to kb_pipeline using (true) with check (true);
create policy pipeline on kb.evaluation_question to kb_pipeline using (true) with check (true);
create policy reader on kb.evaluation for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]));
create policy reader on kb.evaluation_question for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]));
grant select, insert, delete on kb.evaluation, kb.evaluation_question to kb_pipeline;
grant update (accepted_at, accepted_by) on kb.evaluation to kb_pipeline;
grant select on kb.evaluation, kb.evaluation_question to kb_app;

-- Scratch scopes -----------------------------------------------------------------------------------
-- A scope is scratch from its making on or never; only then can it be dropped as a whole. Whoever
-- uses one holds a transaction's advisory lock on its name, so that a scope without one was left
-- behind.

create table kb.scratch_scope (
  scope_id  int primary key references kb.scope on delete cascade,
  actor     text not null check (actor <> ''),
  made_at   timestamptz not null default clock_timestamp()
);
comment on table kb.scratch_scope is 'Scopes made for one evaluation, to be dropped with all in them.';
alter table kb.scratch_scope enable row level security;
create policy pipeline on kb.scratch_scope to kb_pipeline using (true) with check (true);
grant select on kb.scratch_scope to kb_pipeline;

create function kb.make_scratch_scope(p_name text, p_actor text) returns int
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  made int;
begin
  insert into kb.scope (name, title) values (p_name, 'Evaluation') returning scope_id into made;
  insert into kb.scratch_scope (scope_id, actor) values (made, p_actor);
  return made;
end $$;

-- Drops a scratch scope with everything in it; returns its documents. Refuses every other scope.
create function kb.drop_scratch_scope(p_scope_id int) returns bigint
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  dropped bigint;
begin
  if not exists (select from kb.scratch_scope where scope_id = p_scope_id) then
    raise exception 'scope % was not made to be dropped', p_scope_id
      using errcode = 'KB001', hint = 'Erase its documents instead.';
  end if;
  perform set_config('kb.deciding', 'on', true);
  perform set_config('kb.forgetting', 'on', true);
  delete from kb.document where scope_id = p_scope_id;
  get diagnostics dropped = row_count;
  delete from kb.term where scope_id = p_scope_id;
  delete from kb.scope where scope_id = p_scope_id;
  return dropped;
end $$;
revoke all on function kb.make_scratch_scope, kb.drop_scratch_scope from public;
grant execute on function kb.make_scratch_scope, kb.drop_scratch_scope to kb_pipeline;

-- Nobody is told of what is in a scratch scope: it is gone before anybody could look.
create or replace function kb.write_event(
  p_scope_id int, p_document_id text, p_version int
) returns void language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  made bigint;
begin
  if exists (select from kb.scratch_scope where scope_id = p_scope_id) then
    return;
  end if;
  insert into kb.event (scope_id, document_id, version, kind)
  values (p_scope_id, p_document_id, p_version,
    case when p_version is null then 'delete' else 'upsert' end)
  on conflict (scope_id, document_id, xact, started)
    do update set kind = excluded.kind, version = excluded.version
  returning event_no into made;
  insert into kb.delivery (consumer_id, event_no)
  select consumer_id, made from kb.consumer where scope_id is null or scope_id = p_scope_id
  on conflict do nothing;
end $$;
