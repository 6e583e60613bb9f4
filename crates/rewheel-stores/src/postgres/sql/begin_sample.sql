-- begin_sample: reserves the next count of jobs for this node, by the rule of SampleTurn::is_due. $1 is the clock offset; then the
-- minimum interval, the interval as a multiple of a count's cost, and the maximum time of a count. Returns no row if it is not this
-- node's turn.
UPDATE rewheel.samples SET begun_ms = now, counting = true
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock
 WHERE begun_ms IS NULL OR begun_ms > now
    OR now - begun_ms >= greatest($2, cost_ms * $3, CASE WHEN counting THEN $4 ELSE 0 END)
RETURNING begun_ms;
