-- prune_holders: finds holders that died at a time or earlier. There are few rows. Contract: OperateStore::prune.
SELECT seq FROM rewheel_holders WHERE died_ms <= ? ORDER BY seq LIMIT ?
