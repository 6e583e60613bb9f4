-- report_history: stores what nodes $3 counted in the minutes at $2, in place of their previous reports, and returns the time. Leaves out
-- minutes that began more than $5 ago or begin later than in $6. $1 is the clock offset. Contract: HistoryStore::report_history.
WITH clock AS (SELECT rewheel.now_ms() + $1 AS now_ms),
reported AS (
    INSERT INTO rewheel.history (start_ms, reporter, data)
    SELECT given.start_ms, given.reporter, given.data
      FROM unnest($2::bigint[], $3::uuid[], $4::bytea[]) AS given (start_ms, reporter, data), clock
     WHERE given.start_ms BETWEEN clock.now_ms - $5 AND clock.now_ms + $6
        ON CONFLICT (start_ms, reporter) DO UPDATE SET data = excluded.data
)
SELECT now_ms FROM clock;
