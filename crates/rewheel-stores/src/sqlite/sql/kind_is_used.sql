-- kind_is_used: checks whether kind ?1 has unfinished jobs. Each branch is an index range, except for leased jobs, whose number is
-- limited by the concurrency of the holders.
SELECT EXISTS (SELECT 1 FROM lanes JOIN jobs INDEXED BY jobs_due ON jobs.lane = lanes.lane AND jobs.state = 'scheduled'
                WHERE lanes.kind = ?1)
    OR EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_held JOIN lanes ON lanes.lane = jobs.lane
                WHERE jobs.state = 'leased' AND lanes.kind = ?1)
    OR EXISTS (SELECT 1 FROM lanes JOIN jobs INDEXED BY jobs_paused ON jobs.lane = lanes.lane AND jobs.state = 'paused'
                WHERE lanes.kind = ?1)
    OR EXISTS (SELECT 1 FROM lanes JOIN jobs INDEXED BY jobs_blocked ON jobs.lane = lanes.lane AND jobs.state = 'blocked'
                WHERE lanes.kind = ?1)
    OR EXISTS (SELECT 1 FROM lanes JOIN dead INDEXED BY dead_lane ON dead.lane = lanes.lane WHERE lanes.kind = ?1);
