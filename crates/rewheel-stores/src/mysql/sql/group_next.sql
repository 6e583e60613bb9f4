-- group_next: reads the first member of a line that is live, or a dead letter.
SELECT place, job FROM rewheel_members FORCE INDEX (line) WHERE dead = ? AND group_key = ? AND kind = ? AND tenant = ? ORDER BY place LIMIT 1;
