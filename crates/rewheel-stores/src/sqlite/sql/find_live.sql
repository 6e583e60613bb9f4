-- find_live: reads the columns that are needed to end a live job.
SELECT seq, lane, key, group_key FROM jobs WHERE id = ?1;
