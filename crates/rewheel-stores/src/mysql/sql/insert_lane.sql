-- insert_lane: numbers a new lane. If another transaction does the same, this one is repeated.
INSERT INTO rewheel_lanes (kind, tenant, priority, shard) VALUES (?, ?, ?, ?);
