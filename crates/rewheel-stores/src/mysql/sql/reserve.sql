-- reserve: counts the live jobs of a tenant, up to a number, and the room that other holders have reserved for it. Contract:
-- SubmitStore::reserve.
SELECT (SELECT COUNT(*)
          FROM ((SELECT 1 FROM rewheel_lanes AS lanes STRAIGHT_JOIN rewheel_jobs AS jobs ON jobs.lane = lanes.lane
                  WHERE lanes.tenant = ? LIMIT ?)
                UNION ALL
                (SELECT 1 FROM rewheel_lanes AS lanes STRAIGHT_JOIN rewheel_jobs AS jobs ON jobs.lane = -lanes.lane
                  WHERE lanes.tenant = ? LIMIT ?)) AS live),
       (SELECT CAST(COALESCE(SUM(jobs), 0) AS SIGNED) FROM rewheel_reserved WHERE tenant = ?)
