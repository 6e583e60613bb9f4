-- settle_results: the part of settle_keep that stores results: $12, $13, $14 and $15 are jobs, content types, reasons and bodies. A
-- job may be submitted again under its id after it was pruned.
, stored AS (
    INSERT INTO rewheel.results (job, expires_ms, content_type, dropped, body)
    SELECT given.job, rewheel.later(now, $6), given.content_type, given.dropped, given.body
      FROM clock, unnest($12::uuid[], $13::text[], $14::text[], $15::bytea[]) AS given (job, content_type, dropped, body)
     -- Not a join: sessions have no hash joins, and a nested loop compares each result with each job. CASE keeps the planner from making it one.
     WHERE CASE WHEN given.job IN (SELECT gone.id FROM gone) THEN true END
    ON CONFLICT (job) DO UPDATE
       SET expires_ms = excluded.expires_ms, content_type = excluded.content_type, dropped = excluded.dropped, body = excluded.body
)
