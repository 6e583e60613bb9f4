-- name_lanes: what the numbers of lanes stand for.
SELECT lane, kind, tenant, priority, shard FROM rewheel.lanes WHERE lane = ANY ($1::int[]);
