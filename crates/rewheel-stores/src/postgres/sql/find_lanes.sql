-- find_lanes: reads the numbers of lanes that exist.
SELECT known.*
  FROM unnest($1::text[], $2::text[], $3::int[], $4::int[]) AS wanted (kind, tenant, priority, shard),
       LATERAL (SELECT lane, kind, tenant, priority, shard FROM rewheel.lanes
                 WHERE lanes.kind = wanted.kind AND lanes.tenant = wanted.tenant AND lanes.priority = wanted.priority
                   AND lanes.shard = wanted.shard
                OFFSET 0) AS known;
