-- find_live: what ending a live job needs to know of it.
SELECT seq, lane, key FROM jobs WHERE id = ?1;
