-- find_lanes: the numbers of lanes, those that have one.
SELECT lanes.lane, lanes.kind, lanes.tenant, lanes.priority
  FROM unnest($1::text[], $2::text[], $3::int[]) AS wanted (kind, tenant, priority)
  JOIN rewheel.lanes USING (kind, tenant, priority);
