-- group_members: reads the live members of a line, with whether they are live jobs or dead letters.
SELECT members.job, EXISTS (SELECT 1 FROM rewheel_jobs jobs WHERE jobs.id = members.job),
       EXISTS (SELECT 1 FROM rewheel_dead dead WHERE dead.id = members.job)
  FROM rewheel_members members FORCE INDEX (line) WHERE members.dead = 0 AND members.group_key = ? AND members.kind = ? AND members.tenant = ?;
