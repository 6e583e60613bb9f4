-- group_next: finds the smallest member of each of the lines ($1 to $3: group, kind, tenant) that has no head, and locks it. Skips a
-- line whose smallest member another transaction has locked: it is never passed over for a larger one. A dead letter counts only if its
-- kind says so. The next statement makes these jobs the heads of their lines: no other transaction can change them until then.
SELECT next.group_key, next.kind, next.tenant, next.job
  FROM (SELECT line.*, one.job, one.dead
          FROM unnest($1::text[], $2::text[], $3::text[]) AS line (group_key, kind, tenant),
               -- Two lookups, each in an index of its own: a line may have any number of dead letters.
               LATERAL (SELECT first.job, first.dead
                          FROM ((SELECT member.job, member.dead, member.place FROM rewheel.group_members AS member
                                  WHERE member.group_key = line.group_key AND member.kind = line.kind AND member.tenant = line.tenant
                                    AND NOT member.dead
                                  ORDER BY member.place LIMIT 1)
                                UNION ALL
                                (SELECT member.job, member.dead, member.place FROM rewheel.group_members AS member
                                  WHERE member.group_key = line.group_key AND member.kind = line.kind AND member.tenant = line.tenant
                                    AND member.dead AND (SELECT blocks_on_dead FROM rewheel.kinds WHERE name = line.kind)
                                  ORDER BY member.place LIMIT 1)) AS first
                         ORDER BY first.place LIMIT 1) AS one
         -- Not EXISTS: the planner could turn it into a join and read all heads.
         WHERE (SELECT 1 FROM rewheel.group_heads AS head
                 WHERE head.group_key = line.group_key AND head.kind = line.kind AND head.tenant = line.tenant) IS NULL
        OFFSET 0) AS next
       LEFT JOIN LATERAL (SELECT jobs.id FROM rewheel.jobs
                           WHERE NOT next.dead AND jobs.id = next.job AND shelf IN ('blocked', 'paused', 'unreadable')
                             FOR UPDATE SKIP LOCKED) AS live ON true
       LEFT JOIN LATERAL (SELECT dead.id FROM rewheel.dead WHERE next.dead AND dead.id = next.job FOR UPDATE SKIP LOCKED) AS letter ON true
 WHERE live.id IS NOT NULL OR letter.id IS NOT NULL;
