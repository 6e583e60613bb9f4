-- insert_results: stores results of jobs that succeeded. Contract: WorkStore::settle. A job may be submitted again under its id after
-- it was pruned.
INSERT INTO rewheel.results (job, expires_ms, content_type, dropped, body)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::bytea[])
ON CONFLICT (job) DO UPDATE
   SET expires_ms = excluded.expires_ms, content_type = excluded.content_type, dropped = excluded.dropped, body = excluded.body;
