-- Generations: which model's vectors a scope is searched by, and which lie beside them. Vectors of
-- another model are filled beside the live ones (shadow), take their place in one update of one
-- row, and the old ones are kept until they are dropped. Nothing here changes a vector: they lie
-- side by side in kb.embedding, under the same gate, audiences and validity.

create table kb.generation (
  scope_id      int primary key references kb.scope on delete cascade,
  live_key      int not null references kb.model,
  live_since    timestamptz not null default now(),
  beside_key    int references kb.model,
  beside_is     text check (beside_is in ('shadow', 'kept')),
  beside_since  timestamptz,
  embedded      bigint not null default 0 check (embedded >= 0),
  embedded_s    double precision not null default 0 check (embedded_s >= 0),
  check (num_nulls(beside_key, beside_is, beside_since) in (0, 3)),
  check (beside_key <> live_key)
) with (fillfactor = 50);
comment on table kb.generation is
  'The model a scope is searched by, and the one whose vectors are filled or kept beside it.';
comment on column kb.generation.embedded is
  'Vectors computed for the shadow so far, and in embedded_s the seconds that took.';

-- The first vectors of a scope say which model it is searched by.
create function kb.first_generation() returns trigger
language plpgsql security definer set search_path = kb, pg_temp as $$
begin
  insert into kb.generation (scope_id, live_key)
  select distinct on (n.scope_id) n.scope_id, n.model_key from new_rows n
  where not exists (select from kb.generation g where g.scope_id = n.scope_id)
  order by n.scope_id, n.model_key
  on conflict do nothing;
  return null;
end $$;
create trigger generation after insert on kb.embedding referencing new table as new_rows
  for each statement execute function kb.first_generation();

-- Scopes from before: the model of most of their vectors, the newer of two equal ones.
insert into kb.generation (scope_id, live_key)
select distinct on (scope_id) scope_id, model_key
from (select scope_id, model_key, count(*) as vectors from kb.embedding
  group by scope_id, model_key) e
order by scope_id, vectors desc, model_key desc;

-- kb.put_version for a scope with two generations: vectors staged for the one beside are published
-- with the live ones; what has none waits for the fill. The row lock lets a swap wait for puts
-- under way, and count what they brought; a put that a swap overtook needs the new live vectors.
create function kb.put_generations(
  p_version_key bigint, p_valid_from timestamptz, p_audiences text[], p_model_key int,
  p_analyzer text, p_average_length real, p_ordinals int[], p_bm text[], p_lexemes text[],
  out state text, out passages int, out carried int
) language plpgsql as $$
declare
  live int;
  beside int;
  hashes text[];
  vecs halfvec[];
begin
  select g.live_key, g.beside_key into live, beside from kb.version v join kb.generation g using (scope_id)
  where v.version_key = p_version_key and g.beside_key is not null for share of g;
  if beside is not null then
    p_model_key := case when p_model_key = beside then live else p_model_key end;
    select array_agg(embed_hash), array_agg(vec) into hashes, vecs from kb.staged_vector
    where version_key = p_version_key and model_key = beside;
  end if;
  select r.state, r.passages, r.carried into state, passages, carried
  from kb.put_version(p_version_key, p_valid_from, p_audiences, p_model_key, p_analyzer,
    p_average_length, p_ordinals, p_bm, p_lexemes) r;
  if hashes is not null then
    insert into kb.staged_vector (version_key, model_key, embed_hash, carried, vec)
    select p_version_key, beside, u.embed_hash, true, u.vec
    from unnest(hashes, vecs) u (embed_hash, vec);
    perform kb.attach_vectors(p_version_key, beside);
  end if;
end $$;

-- Vectors of a version's passages from other passages of the scope with the same embedded text.
-- Returns how many.
create function kb.carry_vectors(p_version_key bigint, p_model_key int) returns int
language plpgsql as $$
declare
  carried int;
begin
  insert into kb.embedding (model_key, passage_key, scope_id, valid_from, valid_until, earlier,
    audiences, vec)
  select p_model_key, p.passage_key, l.scope_id, l.valid_from, l.valid_until, l.earlier,
    l.audiences, known.vec
  from kb.passage p
  join kb.lex l using (passage_key)
  cross join lateral (select e.vec from kb.passage o join kb.embedding e
      on e.passage_key = o.passage_key and e.model_key = p_model_key
    where o.scope_id = p.scope_id and o.embed_hash = p.embed_hash limit 1) known
  where p.version_key = p_version_key and not exists (select from kb.embedding e
    where e.model_key = p_model_key and e.passage_key = p.passage_key offset 0);
  get diagnostics carried = row_count;
  return carried;
end $$;

alter table kb.scope_log drop constraint scope_log_event_check;
alter table kb.scope_log add constraint scope_log_event_check check (event in
  ('created', 'settings', 'renamed', 'closed', 'reopened', 'expired', 'reembed_started',
   'reembed_swapped', 'reembed_rolled_back', 'reembed_dropped'));

grant select, insert on kb.generation to kb_pipeline;
grant update (live_key, live_since, beside_key, beside_is, beside_since, embedded, embedded_s)
  on kb.generation to kb_pipeline;
grant select on kb.generation to kb_app;
alter table kb.generation enable row level security;
create policy pipeline on kb.generation to kb_pipeline using (true) with check (true);
create policy reader on kb.generation for select to kb_app
  using (scope_id = any ((select kb.allowed_scope_ids())::int[]));
