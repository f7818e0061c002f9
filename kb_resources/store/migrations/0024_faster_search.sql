-- What a search asks first, as a function: planning the join of four tables anew cost more than half
-- of what searching a small scope does. Its plan is kept by the connection, behind any pooler. It runs
-- with the rights of whoever calls, so row level security decides which scopes there are.
create function kb.search_scopes(p_scopes text[])
returns table (name text, scope_id int, analyzer text, live text, live_key int)
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
  select s.name, s.scope_id, l.analyzer, m.model_id, g.live_key
  from kb.scope s
  left join kb.lexicon l using (scope_id)
  left join kb.generation g using (scope_id)
  left join kb.model m on m.model_key = g.live_key
  where s.name = any (p_scopes);
end $$;

-- At 100,000 passages a width of 100 found .974 to .983 of the ten nearest; one of 200 finds all of
-- them, and .996 of the hundred nearest, for no measurable time (bench/search_scale.py).
alter function kb.nearest_indexed set hnsw.ef_search = 200;
