-- kind_is_used: checks whether kind $1 has unfinished jobs. Each branch is an index range, except for held jobs, whose number is limited
-- by the concurrency of the holders. Contract: KindStore::edit_kind.
SELECT EXISTS (SELECT FROM rewheel.lanes, LATERAL (SELECT FROM rewheel.jobs WHERE jobs.lane = lanes.lane AND shelf = 'due' LIMIT 1) AS due
                WHERE lanes.kind = $1)
    OR EXISTS (SELECT FROM rewheel.jobs JOIN rewheel.lanes USING (lane) WHERE shelf = 'held' AND lanes.kind = $1)
    OR EXISTS (SELECT FROM rewheel.lanes, LATERAL (SELECT FROM rewheel.jobs WHERE jobs.lane = lanes.lane AND shelf = 'paused' LIMIT 1) AS paused
                WHERE lanes.kind = $1)
    OR EXISTS (SELECT FROM rewheel.lanes, LATERAL (SELECT FROM rewheel.jobs WHERE jobs.lane = lanes.lane AND shelf = 'blocked' LIMIT 1) AS blocked
                WHERE lanes.kind = $1)
    OR EXISTS (SELECT FROM rewheel.unreadable,
                           LATERAL (SELECT lane, shelf FROM rewheel.jobs WHERE jobs.id = unreadable.job OFFSET 0) AS job
                           JOIN rewheel.lanes USING (lane)
                WHERE job.shelf = 'unreadable' AND lanes.kind = $1)
    OR EXISTS (SELECT FROM rewheel.lanes, LATERAL (SELECT FROM rewheel.dead WHERE dead.lane = lanes.lane LIMIT 1) AS dead
                WHERE lanes.kind = $1);
