-- prune_results: finds and locks results whose retention has ended, and whether they are only remembered any more. Concurrent calls
-- find different results. Contract: OperateStore::prune.
SELECT job, COALESCE(content_type, dropped) IS NULL FROM rewheel_results FORCE INDEX (expires) WHERE expires_ms <= ?
 ORDER BY expires_ms LIMIT ? FOR UPDATE SKIP LOCKED
