-- group_checks_look: reads whether there are lines to look at from transaction $1 on, and which transaction is the oldest one that this
-- statement may not have seen: the next check starts there.
SELECT (SELECT 1 FROM rewheel.group_checks WHERE xact >= $1 LIMIT 1) IS NOT NULL, txid_snapshot_xmin(txid_current_snapshot());
