-- risks: reads the settings of the server that decide what a crash can lose, or that all nodes share. Contract: Store::risks. As texts: the
-- two servers have different types for some of them.
SELECT CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS CHAR), CAST(@@GLOBAL.innodb_doublewrite AS CHAR), CAST(@@GLOBAL.log_bin AS CHAR),
       CAST(@@GLOBAL.sync_binlog AS CHAR), CAST(@@GLOBAL.max_allowed_packet AS SIGNED),
       CAST(@@GLOBAL.max_prepared_stmt_count AS SIGNED),
       (SELECT COUNT(*) FROM rewheel_holders WHERE died_ms IS NULL AND role = 'engine')
