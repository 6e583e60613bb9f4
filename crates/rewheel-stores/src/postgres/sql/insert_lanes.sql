-- insert_lanes: numbers lanes the first time they are seen. In this order, so that two who number the same ones do not
-- wait for each other.
INSERT INTO rewheel.lanes (kind, tenant, priority, shard)
SELECT kind, tenant, priority, shard
  FROM unnest($1::text[], $2::text[], $3::int[], $4::int[]) AS wanted (kind, tenant, priority, shard)
 ORDER BY kind, tenant, priority, shard
ON CONFLICT (kind, tenant, priority, shard) DO NOTHING;
