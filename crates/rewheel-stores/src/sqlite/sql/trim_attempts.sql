-- trim_attempts: keeps only the first ?2 and the last ?3 attempt records of job ?1; returns the dropped counts of the deleted records.
-- Contract: WorkStore::settle.
DELETE FROM attempts
 WHERE job = ?1
   AND seq NOT IN (SELECT seq FROM attempts WHERE job = ?1 ORDER BY seq LIMIT ?2)
   AND seq NOT IN (SELECT seq FROM attempts WHERE job = ?1 ORDER BY seq DESC LIMIT ?3)
RETURNING dropped;
