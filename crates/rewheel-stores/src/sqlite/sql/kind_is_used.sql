-- kind_is_used: whether kind ?1 has jobs that are not finished. Each arm is an index range, but for the leased, which are no more
-- than the holders have places for.
SELECT EXISTS (SELECT 1 FROM lanes JOIN jobs INDEXED BY jobs_due ON jobs.lane = lanes.lane AND jobs.state = 'scheduled'
                WHERE lanes.kind = ?1)
    OR EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_held JOIN lanes ON lanes.lane = jobs.lane
                WHERE jobs.state = 'leased' AND lanes.kind = ?1)
    OR EXISTS (SELECT 1 FROM lanes JOIN jobs INDEXED BY jobs_paused ON jobs.lane = lanes.lane AND jobs.state = 'paused'
                WHERE lanes.kind = ?1)
    OR EXISTS (SELECT 1 FROM lanes JOIN dead INDEXED BY dead_lane ON dead.lane = lanes.lane WHERE lanes.kind = ?1);
