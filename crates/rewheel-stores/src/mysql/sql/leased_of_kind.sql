-- leased_of_kind: counts the leased jobs of a kind.
SELECT CAST(COALESCE(SUM(claims.jobs_left), 0) AS SIGNED)
  FROM rewheel_lanes lanes STRAIGHT_JOIN rewheel_claims claims FORCE INDEX (lane) ON claims.lane = lanes.lane
 WHERE lanes.kind = ?;
