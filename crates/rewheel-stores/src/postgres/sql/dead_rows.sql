-- dead_rows: reads how many rows of the table of live jobs are dead, how many milliseconds ago vacuum last ran on it (-1: never), and whether
-- the server counts at once what vacuum removed; before PostgreSQL 15 a background process does so, up to a second later.
SELECT pg_stat_get_dead_tuples('rewheel.jobs'::regclass),
       coalesce(extract(epoch FROM clock_timestamp() - greatest(pg_stat_get_last_vacuum_time('rewheel.jobs'::regclass),
                                                                pg_stat_get_last_autovacuum_time('rewheel.jobs'::regclass))) * 1000, -1)::bigint,
       current_setting('server_version_num')::int >= 150000;
