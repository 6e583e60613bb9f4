-- next_due: when the first scheduled job behind ?1 is due.
SELECT due_ms FROM jobs INDEXED BY jobs_soon WHERE state = 'scheduled' AND due_ms > ?1 ORDER BY due_ms LIMIT 1;
