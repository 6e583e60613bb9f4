-- limit_waits: reads when a job was last started under a limit. Contract: ReadStore::limit_waits.
SELECT last_ms FROM rewheel_limits WHERE scope = ? AND name = ?
