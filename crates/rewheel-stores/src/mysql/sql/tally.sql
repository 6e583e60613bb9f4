-- tally: counts live jobs by lane and state, and dead letters by lane. Contract: ReadStore::tally. State 4 is a dead letter.
SELECT lanes.kind, counted.state, CAST(SUM(counted.jobs) AS SIGNED), MIN(counted.due_ms)
  FROM (SELECT ABS(lane) AS lane, state, COUNT(*) AS jobs, MIN(CASE state WHEN 0 THEN due_ms END) AS due_ms
          FROM rewheel_jobs GROUP BY ABS(lane), state
        UNION ALL
        SELECT lane, 4, COUNT(*), NULL FROM rewheel_dead GROUP BY lane) AS counted
  JOIN rewheel_lanes AS lanes ON lanes.lane = counted.lane
 GROUP BY lanes.kind, counted.state
