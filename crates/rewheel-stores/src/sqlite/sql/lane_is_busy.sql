-- lane_is_busy: checks whether a job of lane ?1 is due at ?2. The direct path must not overtake it.
SELECT EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_due WHERE state = 'scheduled' AND lane = ?1 AND due_ms <= ?2);
