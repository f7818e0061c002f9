-- Erasing deletes a document's rows table by table and counts them: its passages must not leave with
-- the parsed text before they are counted. It works with the owner's rights; the pipeline's own
-- deletions take the clearance along as before.
drop trigger clearance_gone on kb.parsed;
create trigger clearance_gone after delete on kb.parsed for each row
  when (current_user = 'kb_pipeline')
  execute function kb.drop_clearance();
