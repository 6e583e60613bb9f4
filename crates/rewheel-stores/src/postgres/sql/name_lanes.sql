-- name_lanes: reads the lanes with these numbers.
SELECT lane, kind, tenant, priority, shard FROM rewheel.lanes WHERE lane = ANY ($1::int[]);
