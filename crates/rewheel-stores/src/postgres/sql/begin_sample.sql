-- begin_sample: takes the turn to count, by the rule of SampleTurn::is_due. $1 moves the clock; then the shortest interval, how
-- many times its cost lies between two counts, and how long a count may take. A node whose turn it is not gets no row.
UPDATE rewheel.samples SET begun_ms = now, counting = true
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock
 WHERE begun_ms IS NULL OR begun_ms > now
    OR now - begun_ms >= greatest($2, cost_ms * $3, CASE WHEN counting THEN $4 ELSE 0 END)
RETURNING begun_ms;
