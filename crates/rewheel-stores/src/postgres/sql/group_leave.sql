-- group_leave: takes jobs $1, which have ended, out of their lines, and marks jobs $2 as dead letters. Returns the lines that lost their
-- head by that. A dead letter stays the head of its line if its kind says so.
WITH ended AS (
    DELETE FROM rewheel.group_members
     USING unnest($1::uuid[]) AS given (id),
           LATERAL (SELECT one.ctid AS place FROM rewheel.group_members AS one WHERE one.job = given.id OFFSET 0) AS found
     WHERE group_members.ctid = found.place
    RETURNING group_members.job, group_members.group_key, group_members.kind, group_members.tenant
),
died AS (
    UPDATE rewheel.group_members SET dead = true
      FROM unnest($2::uuid[]) AS given (id),
           LATERAL (SELECT one.ctid AS place FROM rewheel.group_members AS one WHERE one.job = given.id OFFSET 0) AS found
     WHERE group_members.ctid = found.place
    RETURNING group_members.job, group_members.group_key, group_members.kind, group_members.tenant
)
DELETE FROM rewheel.group_heads
 USING (SELECT * FROM ended
        UNION ALL
        SELECT * FROM died WHERE NOT (SELECT blocks_on_dead FROM rewheel.kinds WHERE name = died.kind)) AS gone,
       LATERAL (SELECT head.ctid AS place FROM rewheel.group_heads AS head
                 WHERE head.group_key = gone.group_key AND head.kind = gone.kind AND head.tenant = gone.tenant
                   AND head.job = gone.job OFFSET 0) AS found
 WHERE group_heads.ctid = found.place
RETURNING group_heads.group_key, group_heads.kind, group_heads.tenant;
