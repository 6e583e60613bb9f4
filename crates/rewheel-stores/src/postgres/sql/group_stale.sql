-- group_stale: repairs the lines ($1 to $3: group, kind, tenant). A line loses a head that is a dead letter, unless dead letters of the
-- kind hold up their groups, and a head that is no job any more. A member at the front that is no job any more leaves its line, and one
-- that is a dead letter is marked: a release that knows no groups may have ended or expired it. Locks the dead letter of a head, so that
-- none is redriven as the head of its line at the same time. At most 1,000 members of a line at a time.
WITH line AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS line (group_key, kind, tenant)
),
head AS MATERIALIZED (
    SELECT one.job, one.kind
      FROM line, LATERAL (SELECT job, group_heads.kind FROM rewheel.group_heads
                           WHERE group_heads.group_key = line.group_key AND group_heads.kind = line.kind
                             AND group_heads.tenant = line.tenant OFFSET 0) AS one
     WHERE (SELECT 1 FROM rewheel.jobs WHERE jobs.id = one.job) IS NULL
),
stale AS MATERIALIZED (
    SELECT head.job FROM head, LATERAL (SELECT FROM rewheel.dead WHERE dead.id = head.job FOR UPDATE SKIP LOCKED) AS letter
     WHERE NOT (SELECT blocks_on_dead FROM rewheel.kinds WHERE name = head.kind)
    UNION ALL
    SELECT head.job FROM head WHERE (SELECT 1 FROM rewheel.dead WHERE dead.id = head.job) IS NULL
),
stepped_down AS (
    DELETE FROM rewheel.group_heads
     USING stale, LATERAL (SELECT head.ctid AS place FROM rewheel.group_heads AS head WHERE head.job = stale.job OFFSET 0) AS found
     WHERE group_heads.ctid = found.place
),
member AS MATERIALIZED (
    SELECT one.job, (SELECT 1 FROM rewheel.dead WHERE dead.id = one.job) IS NOT NULL AS died
      FROM line, LATERAL (SELECT group_members.job FROM rewheel.group_members
                           WHERE group_members.group_key = line.group_key AND group_members.kind = line.kind
                             AND group_members.tenant = line.tenant AND NOT group_members.dead
                           ORDER BY group_members.place LIMIT 1000) AS one
     WHERE (SELECT 1 FROM rewheel.jobs WHERE jobs.id = one.job) IS NULL
),
marked AS (
    UPDATE rewheel.group_members SET dead = true
      FROM member, LATERAL (SELECT one.ctid AS place FROM rewheel.group_members AS one WHERE one.job = member.job OFFSET 0) AS found
     WHERE member.died AND group_members.ctid = found.place
)
DELETE FROM rewheel.group_members
 USING member, LATERAL (SELECT one.ctid AS place FROM rewheel.group_members AS one WHERE one.job = member.job OFFSET 0) AS found
 WHERE NOT member.died AND group_members.ctid = found.place;
