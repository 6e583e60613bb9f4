-- risks: settings of the server that decide whether what was acknowledged is kept, and how old its oldest transaction is.
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       coalesce((SELECT extract(epoch FROM clock_timestamp() - min(xact_start)) FROM pg_stat_activity
                  WHERE backend_type = 'client backend'), 0)::bigint,
       (SELECT count(*) FROM pg_replication_slots WHERE NOT active);
