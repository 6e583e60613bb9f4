-- kind_is_used: checks whether a kind has unfinished jobs; returns a row if it has. Each branch looks up the first row of each lane.
(SELECT 1 FROM rewheel_lanes AS lanes STRAIGHT_JOIN rewheel_jobs AS jobs ON jobs.lane = lanes.lane WHERE lanes.kind = ? LIMIT 1)
UNION ALL
(SELECT 1 FROM rewheel_lanes AS lanes STRAIGHT_JOIN rewheel_jobs AS jobs ON jobs.lane = -lanes.lane WHERE lanes.kind = ? LIMIT 1)
UNION ALL
(SELECT 1 FROM rewheel_lanes AS lanes STRAIGHT_JOIN rewheel_dead AS dead ON dead.lane = lanes.lane WHERE lanes.kind = ? LIMIT 1)
LIMIT 1
