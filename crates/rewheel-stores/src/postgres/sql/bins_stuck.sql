-- bins_stuck: reads the bin of finished jobs that expired first, if that was at least $2 milliseconds ago: how long ago, how many such
-- bins there are, how many bins are in use, and who has read the bin for longest and not ended the transaction. $1 is the clock offset.
SELECT bins.bin, clock.now - (from_ms + width_ms), count(*) OVER (), (SELECT count(*) FROM rewheel.bins),
       (SELECT format('process %s (%s, %s)', activity.pid, coalesce(nullif(application_name, ''), usename, 'no name'), activity.state)
          FROM pg_catalog.pg_locks JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid = pg_locks.pid
         WHERE relation = to_regclass('rewheel.finished_bin_' || bins.bin) AND granted AND activity.pid <> pg_backend_pid()
           AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
         ORDER BY xact_start LIMIT 1)
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock, rewheel.bins
 WHERE from_ms + width_ms <= clock.now - $2
 ORDER BY from_ms + width_ms, bin LIMIT 1;
