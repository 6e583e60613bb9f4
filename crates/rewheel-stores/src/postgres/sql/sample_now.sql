-- sample_now: reads the time, and counts live jobs and dead letters, up to $2. $1 is the clock offset. Contract: SampleStore::sample_now.
SELECT rewheel.now_ms() + $1,
       (SELECT count(*) FROM (SELECT FROM rewheel.jobs LIMIT $2) AS live)
       + (SELECT count(*) FROM (SELECT FROM rewheel.dead LIMIT $2) AS dead);
