-- announce: somebody was told of dead letters; of these deaths of them, not of others. Contract: OperateStore::announce.
UPDATE rewheel.dead SET announced_ms = rewheel.now_ms() + $1
  FROM unnest($2::uuid[], $3::bigint[]) AS given (id, version)
 WHERE dead.id = given.id AND dead.version = given.version AND announced_ms IS NULL;
