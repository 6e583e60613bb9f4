-- count_dropped: adds ?3 to the number of dropped records of job ?1, stored in the oldest of its last ?2 records.
UPDATE attempts SET dropped = dropped + ?3
 WHERE seq = (SELECT min(seq) FROM (SELECT seq FROM attempts WHERE job = ?1 ORDER BY seq DESC LIMIT ?2));
