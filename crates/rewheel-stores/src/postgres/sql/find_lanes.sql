-- find_lanes: the numbers of lanes, those that have one.
SELECT known.*
  FROM unnest($1::text[], $2::text[], $3::int[]) AS wanted (kind, tenant, priority),
       LATERAL (SELECT lane, kind, tenant, priority FROM rewheel.lanes
                 WHERE lanes.kind = wanted.kind AND lanes.tenant = wanted.tenant AND lanes.priority = wanted.priority
                OFFSET 0) AS known;
