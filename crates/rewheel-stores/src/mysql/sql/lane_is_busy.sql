-- lane_is_busy: checks whether a job of a lane is due. The direct path must not overtake it.
SELECT 1 FROM rewheel_jobs FORCE INDEX (PRIMARY) WHERE lane = ? AND place <= ? AND state = 0 ORDER BY place LIMIT 1;
