-- 0023: every table has a replica identity. While a table is published for logical replication, the server rejects updates and deletes
-- of rows that it cannot identify. Only the records of attempts had no unique index.
DROP INDEX IF EXISTS rewheel.attempts_job;
CREATE UNIQUE INDEX attempts_job ON rewheel.attempts (job, seq);
ALTER TABLE rewheel.attempts REPLICA IDENTITY USING INDEX attempts_job;
