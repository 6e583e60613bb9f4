-- old_transaction: reads for how many seconds the oldest transaction of the server has been open. Its start is in the server's own time
-- zone. Contract: Store::risks. Needs the privilege PROCESS.
SELECT COALESCE(MAX(TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))), 0) FROM information_schema.innodb_trx
