-- epoch: reads which server this is, and the latest epoch with its server. $1 is a holder that this process renewed: the number of its
-- renewals is returned too.
SELECT server.standby, latest.epoch,
       coalesce(latest.place = server.place AND latest.database = server.database
                AND latest.system IS NOT DISTINCT FROM server.system
                AND latest.timeline IS NOT DISTINCT FROM server.timeline, false),
       server.system, server.timeline, (SELECT renewals FROM rewheel.holders WHERE id = $1),
       coalesce(latest.place = server.place AND latest.database = server.database
                AND latest.system IS NOT DISTINCT FROM server.system, false)
  FROM rewheel.server() AS server
  LEFT JOIN (SELECT * FROM rewheel.epochs ORDER BY epoch DESC LIMIT 1) AS latest ON true;
