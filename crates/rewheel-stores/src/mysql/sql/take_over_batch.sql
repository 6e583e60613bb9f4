-- take_over_batch: frees jobs of a lane that keep their places. As take_over. MySQL assigns from left to right: a start counts if it was
-- recorded under the fence that the job still has.
UPDATE rewheel_jobs FORCE INDEX (PRIMARY)
   SET takeovers_counted = takeovers_counted + IF(started_fence <> 0 AND started_fence = fence, 1, 0), takeovers = takeovers + 1,
       state = 0, fence = fence + 1, version = version + 1,
       holder = 0, claim = 0, leased_ms = 0, overdue_ms = 0, wanted = 0, started_fence = 0, lane = ABS(lane)
 WHERE lane = ? AND place IN ({list}) AND state = 1 AND holder = ?;
