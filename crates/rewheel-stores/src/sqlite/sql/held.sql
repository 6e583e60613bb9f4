-- held: reads the jobs that holder ?1 has had since ?2 or longer, by id after ?3. Contract: WorkStore::held.
SELECT id, fence FROM jobs INDEXED BY jobs_held
 WHERE state = 'leased' AND holder = ?1 AND leased_ms <= ?2 AND id > ?3
 ORDER BY id LIMIT ?4;
