-- group_stale: the lines ($1 to $3: group, kind, tenant) lose a head that is a dead letter, unless dead letters of the kind hold up their
-- groups. Locks the dead letter, so that none is redriven as the head of its line at the same time.
WITH stale AS MATERIALIZED (
    SELECT head.job
      FROM unnest($1::text[], $2::text[], $3::text[]) AS line (group_key, kind, tenant),
           LATERAL (SELECT one.job FROM rewheel.group_heads AS one
                     WHERE one.group_key = line.group_key AND one.kind = line.kind AND one.tenant = line.tenant OFFSET 0) AS head,
           LATERAL (SELECT FROM rewheel.dead WHERE dead.id = head.job FOR UPDATE SKIP LOCKED) AS letter
     WHERE NOT (SELECT blocks_on_dead FROM rewheel.kinds WHERE name = line.kind)
)
DELETE FROM rewheel.group_heads
 USING stale, LATERAL (SELECT head.ctid AS place FROM rewheel.group_heads AS head WHERE head.job = stale.job OFFSET 0) AS found
 WHERE group_heads.ctid = found.place;
