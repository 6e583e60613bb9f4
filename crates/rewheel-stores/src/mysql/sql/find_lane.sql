-- find_lane: reads the number of a lane.
SELECT lane FROM rewheel_lanes WHERE kind = ? AND tenant = ? AND priority = ? AND shard = ?;
