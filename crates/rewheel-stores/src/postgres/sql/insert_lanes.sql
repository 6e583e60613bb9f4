-- insert_lanes: numbers lanes the first time they are seen. In this order, so that two who number the same ones do not
-- wait for each other.
INSERT INTO rewheel.lanes (kind, tenant, priority)
SELECT kind, tenant, priority FROM unnest($1::text[], $2::text[], $3::int[]) AS wanted (kind, tenant, priority)
 ORDER BY kind, tenant, priority
ON CONFLICT (kind, tenant, priority) DO NOTHING;
