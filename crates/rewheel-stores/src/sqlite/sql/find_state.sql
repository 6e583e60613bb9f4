-- find_state: reads the state of a job from any table.
SELECT CASE state WHEN 'blocked' THEN 'scheduled' ELSE state END AS state FROM jobs WHERE id = ?1
UNION ALL SELECT state FROM dead WHERE id = ?1
UNION ALL SELECT state FROM finished WHERE id = ?1;
