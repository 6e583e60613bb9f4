-- set_aside: pauses jobs $2 of the hot table, which cannot be read for the reasons $3. They move to a shelf that no statement searches,
-- until an operator resumes them. The rest of each row stays unchanged: a newer Rewheel may be able to read it. $1 is the clock offset.
WITH given AS MATERIALIZED (SELECT * FROM unnest($2::uuid[], $3::text[]) AS given (id, reason)),
moved AS (
    UPDATE rewheel.jobs
       SET state = 'paused', shelf = 'unreadable', held_by = NULL, held_until_ms = NULL, holder = NULL, leased_ms = NULL,
           overdue_ms = NULL, started_fence = NULL,
           fence = fence + 1,      -- the previous holder may still settle under the old fence
           version = version + 1
      FROM given, LATERAL (SELECT jobs.ctid AS place FROM rewheel.jobs WHERE jobs.id = given.id OFFSET 0) AS found
     WHERE jobs.ctid = found.place
    RETURNING given.id, given.reason
),
-- Entries of jobs that an operator has handled.
done AS (
    DELETE FROM rewheel.unreadable
     WHERE job <> ALL ($2::uuid[])
       AND (SELECT shelf FROM rewheel.jobs WHERE jobs.id = unreadable.job) IS DISTINCT FROM 'unreadable'
)
INSERT INTO rewheel.unreadable (job, at_ms, reason)
SELECT id, rewheel.now_ms() + $1, reason FROM moved
ON CONFLICT (job) DO UPDATE SET at_ms = excluded.at_ms, reason = excluded.reason;
