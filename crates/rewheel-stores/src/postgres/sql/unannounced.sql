-- unannounced: reads dead letters that are not announced yet. Contract: OperateStore::unannounced.
SELECT id, version, lane, attempt, ended_ms, failure_category, failure_code, failure_message
  FROM rewheel.dead WHERE announced_ms IS NULL ORDER BY ended_ms LIMIT $1;
