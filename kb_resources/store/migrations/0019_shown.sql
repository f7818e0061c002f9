-- The gate covers what is shown, not the passages' texts alone; and a duplicate lives only as long
-- as the document it repeats is indexed or on its way.

-- A verdict is for bytes, body, title, names, headings and facts as they stood when it was given.
-- Whatever changes one of them afterwards, a stage or another hand, takes the clearance with it:
-- `verdict_body_digest` is emptied, which nothing but a new verdict fills. And a clean verdict is
-- given for the body that is stored, not for the digest that stands beside it.
create function kb.guard_clearance() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  if new.verdict_at is distinct from old.verdict_at then
    if new.verdict = 'clean' and exists (
      select from kb.parsed where version_key = new.version_key
        and encode(sha256(convert_to(body, 'UTF8')), 'hex') is distinct from new.body_digest
    ) then
      raise exception 'the stored body of version % is not the one that was scanned',
        new.version_key
        using errcode = 'KB001', hint = 'Run the stages from parse on for it again.';
    end if;
  elsif old.verdict = 'clean'
    and (new.title, new.name, new.digest, new.body_digest, new.document_key, new.scope_id)
      is distinct from
        (old.title, old.name, old.digest, old.body_digest, old.document_key, old.scope_id) then
    new.verdict_body_digest := null;
  end if;
  return new;
end $$;
create trigger clearance before update on kb.version for each row
  execute function kb.guard_clearance();

create function kb.drop_clearance() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  update kb.version set verdict_body_digest = null
  where version_key = old.version_key and verdict = 'clean' and verdict_body_digest is not null;
  return null;
end $$;
create trigger clearance after update on kb.parsed for each row
  when ((old.version_key, old.body, old.blocks, old.pages, old.metadata)
    is distinct from (new.version_key, new.body, new.blocks, new.pages, new.metadata))
  execute function kb.drop_clearance();
create trigger clearance_gone after delete on kb.parsed for each row
  execute function kb.drop_clearance();

-- What lost its clearance is scanned again: its result is forgotten, and the document goes back
-- into the line by itself (sensor `stranded_documents`).
create function kb.scan_again() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  delete from kb.stage_result where version_key = new.version_key and stage = 'scan';
  update kb.document set state = 'pending', reason = '', settled_fingerprint = null,
    updated_at = now()
  where document_key = new.document_key and latest_version = new.version and state = 'indexed';
  return null;
end $$;
create trigger withdraw_and_scan after update on kb.version for each row
  when (old.verdict = 'clean' and old.verdict_body_digest is not null
    and new.verdict = 'clean' and new.verdict_body_digest is null)
  execute function kb.scan_again();

-- Where a document comes from is shown too. A new origin sends it into the line, whose scan reads
-- names; its id never changes but by erasing it.
create function kb.guard_names() returns trigger language plpgsql as $$
begin
  if current_user = 'kb_pipeline' and (new.document_id, new.scope_id)
      is distinct from (old.document_id, old.scope_id) then
    raise exception 'the id and scope of a document do not change' using errcode = 'KB001';
  end if;
  if new.origin is distinct from old.origin and new.state = 'indexed' then
    new.state := 'pending';
    new.settled_fingerprint := null;
  end if;
  return new;
end $$;
create trigger names before update of origin, document_id, scope_id on kb.document for each row
  execute function kb.guard_names();

-- Passages: exact slices of the cleared body as before; and headings, locators and ids are those
-- that its cleared blocks give.
create or replace function kb.gate_passage() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  published record;
  body bytea;
  headings text[];
  locators text[];
begin
  for published in
    select n.version_key, v.scope_id, v.verdict_body_digest, v.title, d.document_id
    from (select distinct version_key from new_rows) n
    join kb.version v using (version_key) join kb.document d using (document_key)
  loop
    perform kb.require_cleared(published.version_key);
    select convert_to(p.body, 'UTF8') into body from kb.parsed p
    where p.version_key = published.version_key;
    if encode(sha256(body), 'hex') is distinct from published.verdict_body_digest then
      raise exception 'the stored body of version % is not the one that was cleared',
        published.version_key
        using errcode = 'KB001', hint = 'Run the stages from parse on for it again.';
    end if;
    if exists (
      select 1 from new_rows n
      where n.version_key = published.version_key and (
        n.scope_id <> published.scope_id
        or convert_to(n.text, 'UTF8')
          is distinct from substring(body from n.byte_start + 1 for n.byte_end - n.byte_start))
    ) then
      raise exception 'a passage of version % is not a slice of its cleared body',
        published.version_key
        using errcode = 'KB001', hint = 'Run the chunk stage for it again.';
    end if;
    select array_agg(distinct h.value),
        coalesce(array_agg(distinct b.value ->> 'locator') filter (where b.value ? 'locator'), '{}')
      into headings, locators
    from kb.parsed p cross join lateral jsonb_array_elements(p.blocks) b
    left join lateral jsonb_array_elements_text(b.value -> 'path') h on true
    where p.version_key = published.version_key;
    if exists (
      select 1 from new_rows n
      where n.version_key = published.version_key and (
        not n.heading_path <@ (headings || published.title)
        or n.locator is not null and n.locator <> all (locators)
        or n.passage_id !~ '^[A-Za-z0-9][A-Za-z0-9._:#-]{0,199}$')
    ) then
      raise exception 'a passage of version % has headings, a locator or an id that its cleared '
        'blocks do not give', published.version_key
        using errcode = 'KB001', hint = 'Run the chunk stage for it again.';
    end if;
  end loop;
  return null;
end $$;

-- Duplicates -----------------------------------------------------------------------------------

-- A document that ends in another way than in search, or leaves it, wakes those that repeat it.
-- Removing and erasing do it themselves, since they tell whom they woke.
create function kb.wake_duplicates() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  update kb.document set state = 'pending', reason = '', duplicate_of = null,
    settled_fingerprint = null, updated_at = now()
  where duplicate_of = new.document_key;
  return null;
end $$;
create trigger wake_duplicates after update of state on kb.document for each row
  when (old.state in ('pending', 'indexed')
    and new.state not in ('pending', 'indexed', 'removed', 'erased'))
  execute function kb.wake_duplicates();

update kb.document d set state = 'pending', reason = '', duplicate_of = null,
  settled_fingerprint = null, updated_at = now()
from kb.document first
where first.document_key = d.duplicate_of and first.state not in ('pending', 'indexed');
