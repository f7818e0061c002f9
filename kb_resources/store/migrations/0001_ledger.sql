-- The ledger: scopes, documents, versions, validity, stage results, findings, lifecycle, batches.
-- The gate lives here: a version's verdict is written by kb.record_verdict alone, and 0002's trigger
-- on the retrieval tables believes nothing else.

create schema if not exists kb;

-- Roles are cluster-wide; another database of the same server may have made them already.
do $$
declare
  role_name text;
begin
  foreach role_name in array array['kb_pipeline', 'kb_app'] loop
    if not exists (select 1 from pg_roles where rolname = role_name) then
      begin
        execute format('create role %I login nosuperuser nobypassrls', role_name);
      exception when duplicate_object or unique_violation then null;
      end;
    end if;
    if not pg_has_role(current_user, role_name, 'set') then
      execute format('grant %I to current_user', role_name);
    end if;
  end loop;
end $$;

grant usage on schema kb to kb_pipeline, kb_app;

create table kb.scope (
  scope_id    int generated always as identity primary key,
  name        text not null unique check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
  title       text,
  settings    jsonb not null default '{}',
  created_at  timestamptz not null default now(),
  closed_at   timestamptz
);
comment on table kb.scope is 'Tenant or project boundary; every key and every query leads with it.';

-- Scope ids the session may see: app.scope holds one name or a comma-separated list. Unset: none.
create function kb.allowed_scope_ids() returns int[]
language sql stable security definer set search_path = kb, pg_temp as $$
  select coalesce(array_agg(scope_id), '{}')
  from kb.scope
  where name = any (string_to_array(current_setting('app.scope', true), ','))
$$;

create table kb.document (
  document_key  bigint generated always as identity primary key,
  scope_id      int not null references kb.scope,
  document_id   text not null check (document_id ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$'),
  source_kind   text not null check (source_kind in ('file', 'dropzone', 'url', 'upload', 'api')),
  source_uri    text not null,
  origin        text not null,
  title         text,
  audiences     text[] not null default '{}',
  trusted_by    text,
  language_hint text,
  requested_valid_from timestamptz,
  supersedes    text[] not null default '{}',
  state         text not null default 'pending' check (state in (
    'pending', 'indexed', 'duplicate', 'quarantined', 'blocked', 'language_refused', 'needs_ocr',
    'unsupported', 'too_large', 'encrypted', 'corrupt', 'empty', 'failed', 'removed', 'erased')),
  reason        text not null default '',
  duplicate_of  bigint references kb.document on delete set null,
  latest_version int,
  attempts      int not null default 0,
  settled_fingerprint text,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  unique (scope_id, document_id),
  check (state <> 'duplicate' or duplicate_of is not null or reason <> ''),
  check (state in ('pending', 'indexed') or reason <> '')
) with (fillfactor = 80);
create index document_state on kb.document (scope_id, state);
create index document_duplicate on kb.document (duplicate_of) where duplicate_of is not null;
comment on column kb.document.settled_fingerprint is
  'Hash of bytes, code versions and configuration that led to the state; equal: nothing to do.';
comment on table kb.document is 'A stable identity in a scope; one Dagster partition scope:document.';

create table kb.version (
  version_key   bigint generated always as identity primary key,
  document_key  bigint not null references kb.document on delete cascade,
  scope_id      int not null references kb.scope,
  version       int not null check (version > 0),
  digest        text not null check (digest ~ '^[0-9a-f]{64}$'),
  body_digest   text check (body_digest ~ '^[0-9a-f]{64}$'),
  media_type    text not null,
  size_bytes    bigint not null check (size_bytes >= 0),
  name          text not null default '',
  title         text,
  language      text,
  language_confidence real,
  state         text,
  reason        text not null default '',
  verdict       text check (verdict in ('clean', 'quarantine', 'block')),
  verdict_digest text,
  verdict_body_digest text,
  verdict_actor text,
  verdict_at    timestamptz,
  rule_pack     text,
  created_at    timestamptz not null default now(),
  unique (document_key, version),
  unique (document_key, digest)
) with (fillfactor = 80);
create index version_digest on kb.version (scope_id, digest);
comment on table kb.version is 'Immutable bytes of a document, numbered from 1, with the scan verdict.';

-- One row per interval and state of knowledge. A version that was reinstated has several.
create table kb.validity (
  validity_key  bigint generated always as identity primary key,
  document_key  bigint not null references kb.document on delete cascade,
  version_key   bigint not null references kb.version on delete cascade,
  scope_id      int not null references kb.scope,
  valid         tstzrange not null check (not isempty(valid)),
  known         tstzrange not null check (not isempty(known)),
  -- int8range stands in for equality, so that btree_gist is not needed on managed servers.
  constraint one_version_at_a_time exclude using gist (
    int8range(document_key, document_key, '[]') with &&, valid with &&
  ) where (upper_inf(known))
);
create index validity_document on kb.validity (document_key);
create index validity_version on kb.validity (version_key);

-- What parsing made of a version. Readable by the reading side only once the verdict is clean.
create table kb.parsed (
  version_key   bigint primary key references kb.version on delete cascade,
  scope_id      int not null references kb.scope,
  body          text not null,
  blocks        jsonb not null,
  pages         jsonb not null,
  coverage      jsonb not null,
  metadata      jsonb not null default '{}',
  parser        text not null
);

-- The scan's input: what a reader does not see. For the pipeline's eyes only.
create table kb.extraction (
  version_key   bigint primary key references kb.version on delete cascade,
  scope_id      int not null references kb.scope,
  raw_text      text not null,
  hidden        jsonb not null
);

create table kb.finding (
  finding_id    bigint generated always as identity primary key,
  version_key   bigint not null references kb.version on delete cascade,
  scope_id      int not null references kb.scope,
  rule_id       text not null,
  severity      text not null check (severity in ('info', 'low', 'medium', 'high')),
  part          text not null,
  place         text not null,
  byte_start    int not null,
  byte_end      int not null check (byte_end >= byte_start),
  excerpt       text not null check (length(excerpt) <= 400),
  decoded       text check (length(decoded) <= 400),
  explanation   text not null
);
create index finding_version on kb.finding (version_key);

-- The newest result of each stage for each version; the fingerprint makes a re-run free.
create table kb.stage_result (
  version_key   bigint not null references kb.version on delete cascade,
  stage         text not null check (stage in (
    'acquire', 'parse', 'language', 'scan', 'chunk', 'embed', 'index', 'supersede')),
  scope_id      int not null references kb.scope,
  fingerprint   text not null,
  output        text not null default '',
  state         text,
  reason        text not null default '',
  counts        jsonb not null default '{}',
  details       jsonb not null default '{}',
  duration_s    real not null,
  finished_at   timestamptz not null default now(),
  primary key (version_key, stage)
) with (fillfactor = 80);

-- Chunks between the stages chunk and index; emptied once published. Texts are slices of the body.
create table kb.staged_chunk (
  version_key   bigint not null references kb.version on delete cascade,
  ordinal       int not null check (ordinal >= 0),
  scope_id      int not null references kb.scope,
  passage_id    text not null,
  context       text not null,
  heading_path  text[] not null,
  page          int,
  locator       text,
  byte_start    int not null,
  byte_end      int not null check (byte_end > byte_start),
  char_start    int not null,
  char_end      int not null check (char_end > char_start),
  content_hash  text not null,
  embed_hash    text not null,
  token_count   int not null,
  primary key (version_key, ordinal),
  unique (version_key, passage_id)
);

-- Append-only, one hash chain per document (`kb lifecycle verify` walks it).
create table kb.lifecycle (
  lifecycle_id  bigint generated always as identity primary key,
  scope_id      int not null references kb.scope,
  document_key  bigint not null references kb.document on delete cascade,
  version       int,
  event         text not null,
  actor         text not null,
  details       jsonb not null default '{}',
  at            timestamptz not null default clock_timestamp(),
  previous_hash text not null default '',
  hash          text not null default ''
);
create index lifecycle_document on kb.lifecycle (document_key, lifecycle_id);

create function kb.lifecycle_chain() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('kb.lifecycle', new.document_key));
  select hash into new.previous_hash from kb.lifecycle
  where document_key = new.document_key order by lifecycle_id desc limit 1;
  new.previous_hash := coalesce(new.previous_hash, '');
  new.hash := encode(sha256(convert_to(concat_ws(E'\x1f', new.previous_hash,
    coalesce(new.version::text, ''), new.event, new.actor, new.details::text,
    (extract(epoch from new.at) * 1000000)::bigint::text), 'UTF8')), 'hex');
  return new;
end $$;
create trigger lifecycle_chain before insert on kb.lifecycle
  for each row execute function kb.lifecycle_chain();

create function kb.refuse_change() returns trigger language plpgsql as $$
begin
  -- A cascade from erasing the document runs one trigger level deeper.
  if tg_op = 'DELETE' and pg_trigger_depth() > 1 then return old; end if;
  raise exception 'kb.% is append-only', tg_table_name using errcode = 'KB002';
end $$;
create trigger lifecycle_append_only before update or delete on kb.lifecycle
  for each row execute function kb.refuse_change();

-- A list of documents for one kb_batch run.
create table kb.batch (
  batch_id      text primary key check (batch_id ~ '^[a-z0-9-]{1,64}$'),
  actor         text not null,
  cause         text not null,
  created_at    timestamptz not null default now()
);
create table kb.batch_item (
  batch_id      text not null references kb.batch on delete cascade,
  document_key  bigint not null references kb.document on delete cascade,
  primary key (batch_id, document_key)
);
create index batch_item_document on kb.batch_item (document_key);

-- The only writer of verdicts. The digests given must be those stored: a verdict is for bytes.
create function kb.record_verdict(
  p_version_key bigint, p_verdict text, p_digest text, p_body_digest text,
  p_rule_pack text, p_actor text, p_findings jsonb
) returns void language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  v kb.version;
begin
  select * into v from kb.version where version_key = p_version_key for update;
  if not found then
    raise exception 'no such version' using errcode = 'KB003';
  end if;
  if v.digest is distinct from p_digest or v.body_digest is distinct from p_body_digest then
    raise exception 'the verdict is for other bytes than the version holds'
      using errcode = 'KB001', hint = 'Scan the version again.';
  end if;
  if coalesce(p_actor, '') = '' or coalesce(p_rule_pack, '') = '' then
    raise exception 'a verdict needs an actor and a rule pack' using errcode = 'KB001';
  end if;
  delete from kb.finding where version_key = p_version_key;
  insert into kb.finding (version_key, scope_id, rule_id, severity, part, place, byte_start,
    byte_end, excerpt, decoded, explanation)
  select p_version_key, v.scope_id, f.rule_id, f.severity, f.part, f.place, f.byte_start,
    f.byte_end, f.excerpt, f.decoded, f.explanation
  from jsonb_to_recordset(p_findings) f(rule_id text, severity text, part text, place text,
    byte_start int, byte_end int, excerpt text, decoded text, explanation text);
  update kb.version set verdict = p_verdict, verdict_digest = p_digest,
    verdict_body_digest = p_body_digest, verdict_actor = p_actor, verdict_at = now(),
    rule_pack = p_rule_pack
  where version_key = p_version_key;
  insert into kb.lifecycle (scope_id, document_key, version, event, actor, details)
  values (v.scope_id, v.document_key, v.version, 'verdict', p_actor, jsonb_build_object(
    'verdict', p_verdict, 'rule_pack', p_rule_pack, 'findings', jsonb_array_length(p_findings)));
end $$;
revoke all on function kb.record_verdict from public;
grant execute on function kb.record_verdict to kb_pipeline;

-- After a block or a refusal no text stays, but rule ids, spans and reasons do (P-46).
create function kb.purge_finding_texts(p_version_key bigint) returns void
language sql security definer set search_path = kb, pg_temp as $$
  update kb.finding set excerpt = '', decoded = null, place = '' where version_key = p_version_key
$$;
revoke all on function kb.purge_finding_texts from public;
grant execute on function kb.purge_finding_texts to kb_pipeline;

-- Is this version cleared for exactly the bytes and the body it holds now?
create function kb.is_cleared(p_version_key bigint) returns boolean
language sql stable security definer set search_path = kb, pg_temp as $$
  select exists (
    select 1 from kb.version
    where version_key = p_version_key and verdict = 'clean' and verdict_digest = digest
      and verdict_body_digest = body_digest and coalesce(state, 'indexed') = 'indexed')
$$;

-- Publishing intervals: from p_from on this version holds; whatever held then ends there.
-- Returns the intervals known now, as the retrieval rows carry them.
create function kb.open_validity(p_version_key bigint, p_from timestamptz)
returns void language plpgsql as $$
declare
  v kb.version;
  old kb.validity;
  t timestamptz := clock_timestamp();
begin
  select * into strict v from kb.version where version_key = p_version_key;
  for old in
    select * from kb.validity
    where document_key = v.document_key and upper_inf(known)
      and valid && tstzrange(p_from, null)
    for update
  loop
    update kb.validity
      set known = tstzrange(lower(known), greatest(t, lower(known) + interval '1 microsecond'))
      where validity_key = old.validity_key;
    if lower(old.valid) < p_from then
      insert into kb.validity (document_key, version_key, scope_id, valid, known)
      values (v.document_key, old.version_key, v.scope_id,
        tstzrange(lower(old.valid), p_from), tstzrange(t, null));
    end if;
  end loop;
  insert into kb.validity (document_key, version_key, scope_id, valid, known)
  values (v.document_key, p_version_key, v.scope_id, tstzrange(p_from, null), tstzrange(t, null));
end $$;

-- Rights. The pipeline sees all scopes but cannot touch verdicts; the reading side sees its scope.
grant select, insert on kb.scope to kb_pipeline;
grant update (title, settings, closed_at) on kb.scope to kb_pipeline;
grant select, insert, update on kb.document to kb_pipeline;
grant select on kb.version to kb_pipeline;
grant insert (document_key, scope_id, version, digest, media_type, size_bytes, name)
  on kb.version to kb_pipeline;
grant update (body_digest, title, language, language_confidence, state, reason)
  on kb.version to kb_pipeline;
grant select, insert, update on kb.validity to kb_pipeline;
grant select, insert, update, delete on kb.parsed, kb.extraction, kb.stage_result,
  kb.staged_chunk, kb.batch, kb.batch_item to kb_pipeline;
grant select on kb.finding to kb_pipeline;
grant select, insert on kb.lifecycle to kb_pipeline;
grant select on kb.scope, kb.document, kb.validity, kb.lifecycle to kb_app;
grant select (version_key, document_key, scope_id, version, digest, media_type, size_bytes, name,
  title, language, state, reason, created_at) on kb.version to kb_app;
grant select on kb.parsed to kb_app;

do $$
declare
  table_name text;
begin
  foreach table_name in array array['document', 'version', 'validity', 'parsed', 'extraction',
      'finding', 'stage_result', 'staged_chunk', 'lifecycle'] loop
    execute format('alter table kb.%I enable row level security', table_name);
    execute format(
      'create policy pipeline on kb.%I to kb_pipeline using (true) with check (true)', table_name);
  end loop;
  foreach table_name in array array['document', 'version', 'validity', 'lifecycle'] loop
    execute format('create policy reader on kb.%I for select to kb_app
      using (scope_id = any ((select kb.allowed_scope_ids())::int[]))', table_name);
  end loop;
end $$;
create policy reader on kb.parsed for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]) and kb.is_cleared(version_key));
alter table kb.scope enable row level security;
create policy pipeline on kb.scope to kb_pipeline using (true) with check (true);
create policy reader on kb.scope for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]));
