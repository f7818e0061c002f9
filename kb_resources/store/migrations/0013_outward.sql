-- Documents that are to be read by another machine, or shown to a model for a second opinion, are
-- decided about and written down like questions and passages.
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
  purpose in ('answer', 'embed_question', 'embed_passages', 'parse', 'second_opinion'));
