-- name_lane: reads the lane with a number.
SELECT kind, tenant, priority, shard FROM rewheel_lanes WHERE lane = ?;
