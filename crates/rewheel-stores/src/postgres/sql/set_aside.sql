-- set_aside: jobs $2 of the hot table cannot be read; $3 says why. They are paused, on a shelf where nothing looks for them, until
-- a person resumes them. Nothing else of a row changes: a newer Rewheel may be able to read it. $1 moves the clock.
WITH given AS MATERIALIZED (SELECT * FROM unnest($2::uuid[], $3::text[]) AS given (id, reason)),
moved AS (
    UPDATE rewheel.jobs
       SET state = 'paused', shelf = 'unreadable', held_by = NULL, held_until_ms = NULL, holder = NULL, leased_ms = NULL,
           overdue_ms = NULL, started_fence = NULL,
           fence = fence + 1,      -- whoever had it may still settle under the old one
           version = version + 1
      FROM given, LATERAL (SELECT jobs.ctid AS place FROM rewheel.jobs WHERE jobs.id = given.id OFFSET 0) AS found
     WHERE jobs.ctid = found.place
    RETURNING given.id, given.reason
),
-- Those that a person has dealt with.
done AS (
    DELETE FROM rewheel.unreadable
     WHERE job <> ALL ($2::uuid[])
       AND (SELECT shelf FROM rewheel.jobs WHERE jobs.id = unreadable.job) IS DISTINCT FROM 'unreadable'
)
INSERT INTO rewheel.unreadable (job, at_ms, reason)
SELECT id, rewheel.now_ms() + $1, reason FROM moved
ON CONFLICT (job) DO UPDATE SET at_ms = excluded.at_ms, reason = excluded.reason;
