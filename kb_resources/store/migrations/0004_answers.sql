-- Answers: what a search found, what was sent to a model, what an answer cites, and citations that
-- people keep. The logs hold digests and places, never a question's or a document's text.

-- How far a document's text may travel: null is the scope's setting `content_class`, and without
-- that 'confidential', which no model outside one's own machines is shown.
alter table kb.document add column content_class text
  check (content_class in ('public', 'internal', 'confidential'));

-- Logs: a row each, written in the transaction of what it speaks of, partitioned by month. Nobody
-- but the owner may change or delete a row.
create table kb.retrieval_log (
  correlation_id  text not null check (correlation_id ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'),
  at              timestamptz not null default clock_timestamp(),
  retrieval_id    uuid not null default gen_random_uuid(),
  scope_ids       int[] not null check (scope_ids <> '{}'),
  actor           text not null check (actor <> ''),
  audiences       text[],
  question_digest text not null check (question_digest ~ '^[0-9a-f]{64}$'),
  key_id          text not null check (key_id <> ''),
  asked_mode      text not null,
  mode            text not null,
  k               int not null check (k > 0),
  as_of           timestamptz not null,
  historical      boolean not null,
  filters         jsonb,
  model_id        text,
  analyzer        text not null,
  hits            jsonb not null,
  primary key (correlation_id, at, retrieval_id)
) partition by range (at);
comment on table kb.retrieval_log is 'One row a search: keyed digest of the question, hits by rank.';
comment on column kb.retrieval_log.audiences is 'Names held by who asked; null: every audience.';
comment on column kb.retrieval_log.as_of is 'Instant of valid time that was searched.';

create table kb.disclosure_log (
  correlation_id  text not null check (correlation_id ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'),
  at              timestamptz not null default clock_timestamp(),
  disclosure_id   uuid not null default gen_random_uuid(),
  scope_ids       int[] not null check (scope_ids <> '{}'),
  actor           text not null check (actor <> ''),
  purpose         text not null check (purpose in ('answer', 'embed_question', 'embed_passages')),
  destination     text not null check (destination <> ''),
  hosting         text not null check (hosting in ('self_hosted', 'external')),
  model           text not null,
  content_class   text not null check (content_class in ('public', 'internal', 'confidential')),
  decision        text not null check (decision in ('allowed', 'blocked')),
  parts           jsonb not null,
  primary key (correlation_id, at, disclosure_id)
) partition by range (at);
comment on table kb.disclosure_log is
  'One row per text bundle that was to leave for a model: decided before a byte was sent.';

create table kb.answer_log (
  correlation_id  text not null check (correlation_id ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'),
  at              timestamptz not null default clock_timestamp(),
  answer_id       uuid not null default gen_random_uuid(),
  scope_ids       int[] not null check (scope_ids <> '{}'),
  actor           text not null check (actor <> ''),
  answerer        text not null check (answerer <> ''),
  abstained       boolean not null,
  answer_digest   text not null check (answer_digest ~ '^[0-9a-f]{64}$'),
  statements      jsonb not null,
  rejected        jsonb not null,
  calls           int not null check (calls >= 0),
  prompt_tokens   int,
  answer_tokens   int,
  duration_s      real not null,
  primary key (correlation_id, at, answer_id)
) partition by range (at);
comment on table kb.answer_log is 'One row an answer: which spans its statements cite, what it took.';

create table kb.retrieval_log_default partition of kb.retrieval_log default;
create table kb.disclosure_log_default partition of kb.disclosure_log default;
create table kb.answer_log_default partition of kb.answer_log default;

-- Monthly partitions from the month of p_from on; returns how many were made. Rows that came to a
-- default partition meanwhile move to their month.
create function kb.ensure_log_partitions(p_from timestamptz, p_months int) returns int
language plpgsql security definer set search_path = kb, pg_temp set timezone = 'UTC' as $$
declare
  log text;
  part text;
  first timestamptz;
  made int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.log_partitions', 0));
  foreach log in array array['retrieval_log', 'disclosure_log', 'answer_log'] loop
    for n in 0 .. p_months - 1 loop
      first := date_trunc('month', p_from) + make_interval(months => n);
      part := log || to_char(first, '_YYYY_MM');
      continue when to_regclass('kb.' || part) is not null;
      execute format('create table kb.%I (like kb.%I including all)', part, log);
      execute format('alter table kb.%I enable row level security', part);
      execute format('with moved as (delete from kb.%I where at >= %L and at < %L returning *)
        insert into kb.%I select * from moved', log || '_default', first,
        first + interval '1 month', part);
      execute format('alter table kb.%I attach partition kb.%I for values from (%L) to (%L)',
        log, part, first, first + interval '1 month');
      made := made + 1;
    end loop;
  end loop;
  return made;
end $$;

-- Drops the months that ended at or before p_before; returns how many tables went.
create function kb.drop_log_partitions(p_before timestamptz) returns int
language plpgsql security definer set search_path = kb, pg_temp set timezone = 'UTC' as $$
declare
  part text;
  dropped int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.log_partitions', 0));
  for part in
    select c.relname from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'kb' and c.relispartition and c.relkind = 'r'
      and c.relname ~ '^(retrieval|disclosure|answer)_log_[0-9]{4}_[0-9]{2}$'
      and to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month' <= p_before
  loop
    execute format('drop table kb.%I', part);
    dropped := dropped + 1;
  end loop;
  return dropped;
end $$;
revoke all on function kb.ensure_log_partitions, kb.drop_log_partitions from public;
grant execute on function kb.ensure_log_partitions, kb.drop_log_partitions to kb_pipeline;

-- Citations people keep -------------------------------------------------------------------------

create table kb.citation (
  citation_id     text primary key check (citation_id ~ '^[a-z0-9]{8,64}$'),
  scope_id        int not null references kb.scope,
  holder          text not null check (length(holder) between 1 and 200),
  note            text not null default '' check (length(note) <= 2000),
  correlation_id  text,
  document_key    bigint references kb.document on delete set null,
  version         int not null,
  digest          text not null check (digest ~ '^[0-9a-f]{64}$'),
  passage_id      text not null,
  page            int,
  char_start      int not null check (char_start >= 0),
  char_end        int not null check (char_end > char_start),
  body_start      int not null check (body_start >= 0),
  body_end        int not null check (body_end > body_start),
  quote           text not null,
  prefix          text not null,
  suffix          text not null,
  created_by      text not null check (created_by <> ''),
  created_at      timestamptz not null default clock_timestamp(),
  status          text not null default 'stands'
    check (status in ('stands', 'superseded', 'moved', 'missing')),
  version_now     int,
  place           jsonb,
  checked_at      timestamptz,
  checked_against text not null default '',
  check (quote <> '' or status = 'missing')
) with (fillfactor = 80);
create index citation_holder on kb.citation (scope_id, holder, created_at);
create index citation_document on kb.citation (document_key);
comment on table kb.citation is 'Quotes kept on request, and whether the document still says so.';
comment on column kb.citation.char_start is 'In the page text (the body without pages), code points.';
comment on column kb.citation.body_start is 'In the whole body, code points.';
comment on column kb.citation.checked_against is
  'Version and body that the last check looked at; another one holds: the citation is due.';

-- Erasure takes the words of kept citations, and the document's name and places out of the logs.
create function kb.forget_answers(p_document_key bigint) returns void
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  named record;
  gone jsonb := '{"erased": true}';
begin
  update kb.citation set quote = '', prefix = '', suffix = '', note = '', passage_id = '',
    place = null, version_now = null, status = 'missing', checked_at = clock_timestamp()
  where document_key = p_document_key;
  select s.name as scope, d.document_id into named
  from kb.document d join kb.scope s using (scope_id) where d.document_key = p_document_key;
  update kb.retrieval_log set hits = (
    select jsonb_agg(case when h->>'scope' = named.scope and h->>'document_id' = named.document_id
      then gone || jsonb_build_object('rank', h->'rank') else h end order by n)
    from jsonb_array_elements(hits) with ordinality x (h, n))
  where hits @> jsonb_build_array(to_jsonb(named));
  update kb.disclosure_log set parts = (
    select jsonb_agg(case when h->>'scope' = named.scope and h->>'document_id' = named.document_id
      then gone || jsonb_build_object('kind', h->'kind', 'content_class', h->'content_class')
      else h end order by n)
    from jsonb_array_elements(parts) with ordinality x (h, n))
  where parts @> jsonb_build_array(to_jsonb(named));
  update kb.answer_log set statements = (
    select jsonb_agg(jsonb_set(s, '{citations}', (
      select coalesce(jsonb_agg(case when h->>'scope' = named.scope
        and h->>'document_id' = named.document_id then gone else h end order by m), '[]')
      from jsonb_array_elements(s->'citations') with ordinality y (h, m))) order by n)
    from jsonb_array_elements(statements) with ordinality x (s, n))
  where statements @> jsonb_build_array(
    jsonb_build_object('citations', jsonb_build_array(to_jsonb(named))));
end $$;
revoke all on function kb.forget_answers from public;
grant execute on function kb.forget_answers to kb_pipeline;

create function kb.forget_erased() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  perform kb.forget_answers(old.document_key);
  return coalesce(new, old);
end $$;
create trigger forget_answers before update of state on kb.document for each row
  when (new.state = 'erased' and old.state <> 'erased') execute function kb.forget_erased();
create trigger forget_answers_of_deleted before delete on kb.document for each row
  execute function kb.forget_erased();

-- Rights: the reading side appends to the logs and reads those of its scopes.
grant select, insert on kb.retrieval_log, kb.disclosure_log, kb.answer_log to kb_app, kb_pipeline;
grant select, insert, delete on kb.citation to kb_app;
grant update (status, version_now, place, checked_at, checked_against) on kb.citation to kb_app;
grant select on kb.citation to kb_pipeline;
grant select (body_digest) on kb.version to kb_app; -- whether a check still speaks of this body
grant update (status, version_now, place, checked_at, checked_against) on kb.citation to kb_pipeline;

do $$
declare
  table_name text;
begin
  foreach table_name in array array['retrieval_log', 'disclosure_log', 'answer_log'] loop
    execute format('alter table kb.%I enable row level security', table_name);
    execute format('alter table kb.%I enable row level security', table_name || '_default');
    execute format(
      'create policy pipeline on kb.%I to kb_pipeline using (true) with check (true)', table_name);
    execute format('create policy reader on kb.%I to kb_app
      using (scope_ids <@ (select kb.allowed_scope_ids())::int[])
      with check (scope_ids <@ (select kb.allowed_scope_ids())::int[])', table_name);
  end loop;
end $$;
alter table kb.citation enable row level security;
create policy pipeline on kb.citation to kb_pipeline using (true) with check (true);
create policy reader on kb.citation to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]))
  with check (scope_id = any ((select kb.allowed_scope_ids())::int[]));

select kb.ensure_log_partitions(now(), 3);
