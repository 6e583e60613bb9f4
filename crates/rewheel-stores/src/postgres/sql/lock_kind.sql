-- lock_kind: one kind that is about to be changed, the time, and which of these holders live. At most one row is changed by one
-- at a time.
SELECT rewheel.now_ms() + $2, name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation,
       EXISTS (SELECT FROM rewheel.holders WHERE id = kinds.prober AND died_ms IS NULL),
       EXISTS (SELECT FROM rewheel.holders WHERE id = $3 AND died_ms IS NULL)
  FROM rewheel.kinds WHERE name = $1 FOR UPDATE;
