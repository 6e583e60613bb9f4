-- announce: marks dead letters as announced, only for the given deaths. Contract: OperateStore::announce. Finds them by id, whatever the
-- statistics say: there may be many that are not announced.
UPDATE rewheel.dead SET announced_ms = rewheel.now_ms() + $1
  FROM unnest($2::uuid[], $3::bigint[]) AS given (id, version),
       LATERAL (SELECT dead.ctid AS place FROM rewheel.dead WHERE dead.id = given.id OFFSET 0) AS found
 WHERE dead.ctid = found.place AND dead.version = given.version AND coalesce(announced_ms, -1) = -1;
