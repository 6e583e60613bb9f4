-- risks: reads the server settings that decide whether acknowledged writes are durable, here and on standbys, the age of the oldest
-- transaction, which of the indexes $1 are missing or invalid, and the number of dead rows.
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       coalesce((SELECT extract(epoch FROM clock_timestamp() - min(xact_start)) FROM pg_stat_activity
                  WHERE backend_type = 'client backend'), 0)::bigint,
       (SELECT count(*) FROM pg_replication_slots WHERE NOT active),
       (SELECT coalesce(string_agg(name, ', ' ORDER BY name), '') FROM unnest($1::text[]) AS wanted (name)
         WHERE NOT EXISTS (SELECT FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid
                                   JOIN pg_namespace ON pg_namespace.oid = relnamespace
                            WHERE nspname = split_part('rewheel.', '.', 1) AND relname = name AND indisvalid AND indisready)),
       current_setting('autovacuum'),
       (SELECT coalesce(max(n_dead_tup) FILTER (WHERE n_dead_tup > 1000000 AND n_dead_tup > 10 * n_live_tup), 0)
          FROM pg_stat_user_tables WHERE schemaname = split_part('rewheel.', '.', 1))::bigint,
       current_setting('synchronous_standby_names');
