-- announce: somebody was told of dead letters; of these deaths of them, not of others. Contract: OperateStore::announce.
-- Found by their ids whatever the statistics say: of those not announced there may be many.
UPDATE rewheel.dead SET announced_ms = rewheel.now_ms() + $1
  FROM unnest($2::uuid[], $3::bigint[]) AS given (id, version),
       LATERAL (SELECT dead.ctid AS place FROM rewheel.dead WHERE dead.id = given.id OFFSET 0) AS found
 WHERE dead.ctid = found.place AND dead.version = given.version AND coalesce(announced_ms, -1) = -1;
