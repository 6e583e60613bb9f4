-- unannounced: reads dead letters that are not announced yet. Contract: OperateStore::unannounced.
SELECT id, version, lane, attempt, ended_ms, failure_category, failure_code, failure_message
  FROM rewheel_dead FORCE INDEX (unannounced) WHERE announced_ms = 0 ORDER BY ended_ms LIMIT ?
