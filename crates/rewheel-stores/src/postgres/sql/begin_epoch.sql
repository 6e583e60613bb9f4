-- begin_epoch: begins an epoch after epoch $1, the highest that this process has seen, for the reason $2; unless another process has begun
-- one on this server meanwhile.
INSERT INTO rewheel.epochs (epoch, began_ms, reason, system, timeline, database, place)
SELECT greatest(latest.epoch, $1) + 1, rewheel.now_ms(), $2, server.system, server.timeline, server.database, server.place
  FROM rewheel.server() AS server
  LEFT JOIN (SELECT * FROM rewheel.epochs ORDER BY epoch DESC LIMIT 1) AS latest ON true
 WHERE (coalesce(latest.epoch, -1) <= $1
        OR latest.place IS DISTINCT FROM server.place OR latest.database IS DISTINCT FROM server.database
        OR latest.system IS DISTINCT FROM server.system OR latest.timeline IS DISTINCT FROM server.timeline)
ON CONFLICT (epoch) DO NOTHING;
