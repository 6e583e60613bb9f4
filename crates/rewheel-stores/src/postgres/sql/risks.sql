-- risks: settings of the server that decide whether what was acknowledged is kept, how old its oldest transaction is, which of the
-- indexes $1 are not there or not usable, and how many rows that are gone have not been cleared away.
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
          FROM pg_stat_user_tables WHERE schemaname = split_part('rewheel.', '.', 1))::bigint;
