-- count_dropped: ?3 more records of job ?1 are gone before the oldest of its last ?2.
UPDATE attempts SET dropped = dropped + ?3
 WHERE seq = (SELECT min(seq) FROM (SELECT seq FROM attempts WHERE job = ?1 ORDER BY seq DESC LIMIT ?2));
