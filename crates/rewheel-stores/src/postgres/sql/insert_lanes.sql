-- insert_lanes: numbers new lanes. Sorted, so that two transactions that number the same lanes cannot deadlock.
INSERT INTO rewheel.lanes (kind, tenant, priority, shard)
SELECT kind, tenant, priority, shard
  FROM unnest($1::text[], $2::text[], $3::int[], $4::int[]) AS wanted (kind, tenant, priority, shard)
 ORDER BY kind, tenant, priority, shard
ON CONFLICT (kind, tenant, priority, shard) DO NOTHING;
