-- Forgetting a person also ends what lets them in: their sessions and their membership.

-- Writes `p_alias` wherever `p_actor` stands as one who did something. Of a member (`user:SUBJECT`)
-- the sessions and the membership go too, and the log of access names them no more. The last
-- administrator cannot be forgotten. Returns rows by table and column.
create or replace function kb.forget_actor(p_actor text, p_alias text) returns jsonb
language plpgsql security definer set search_path = kb, pg_temp as $$
declare
  member_subject text := substr(p_actor, length('user:') + 1);
  changed jsonb := '{}';
  n bigint;
begin
  perform set_config('kb.forgetting', 'on', true);
  if p_actor like 'user:_%' then
    delete from kb.session where kind = 'member' and subject = member_subject;
    get diagnostics n = row_count;
    if n > 0 then changed := changed || jsonb_build_object('session', n); end if;
    delete from kb.member where subject = member_subject;
    get diagnostics n = row_count;
    if n > 0 then changed := changed || jsonb_build_object('member', n); end if;
    update kb.access_event set subject = p_alias where subject = member_subject;
    get diagnostics n = row_count;
    if n > 0 then changed := changed || jsonb_build_object('access_event.member', n); end if;
  end if;
  return changed || kb.replace_everywhere(p_actor, p_alias, null, 'actor forgotten');
end $$;
