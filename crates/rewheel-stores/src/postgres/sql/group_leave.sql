-- group_leave: takes jobs $1, which have ended, out of their lines, and marks jobs $2 as dead letters. They lose their turn; a dead letter
-- keeps it if its kind says so. Returns their lines, and those of jobs $3, which the transaction has only locked: a transaction that locks a job of a
-- line has to look whether the line needs another head.
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
),
stepped_down AS (
    DELETE FROM rewheel.group_heads
     USING (SELECT * FROM ended
            UNION ALL
            SELECT * FROM died WHERE NOT (SELECT blocks_on_dead FROM rewheel.kinds WHERE name = died.kind)) AS gone,
           LATERAL (SELECT head.ctid AS place FROM rewheel.group_heads AS head
                     WHERE head.group_key = gone.group_key AND head.kind = gone.kind AND head.tenant = gone.tenant
                       AND head.job = gone.job OFFSET 0) AS found
     WHERE group_heads.ctid = found.place
)
SELECT group_key, kind, tenant FROM ended
UNION ALL
SELECT group_key, kind, tenant FROM died
UNION ALL
SELECT one.group_key, one.kind, one.tenant
  FROM unnest($3::uuid[]) AS given (id),
       LATERAL (SELECT * FROM rewheel.group_members WHERE group_members.job = given.id OFFSET 0) AS one;
