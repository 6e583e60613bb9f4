-- sample_now: the time, and how many live jobs and dead letters there are, counted up to $2. $1 moves the clock. Contract:
-- SampleStore::sample_now.
SELECT rewheel.now_ms() + $1,
       (SELECT count(*) FROM (SELECT FROM rewheel.jobs LIMIT $2) AS live)
       + (SELECT count(*) FROM (SELECT FROM rewheel.dead LIMIT $2) AS dead);
