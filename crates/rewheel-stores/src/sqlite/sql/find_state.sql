-- find_state: where a job is, whichever table it is in.
SELECT state FROM jobs WHERE id = ?1
UNION ALL SELECT state FROM dead WHERE id = ?1
UNION ALL SELECT state FROM finished WHERE id = ?1;
