-- lock_kind: one kind that is about to be changed, the time, and every engine that lives, with its prober and holder $3 if they do. At
-- most one row is changed by one at a time.
SELECT rewheel.now_ms() + $2, name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced,
       version, ARRAY (SELECT id FROM rewheel.holders
                        WHERE died_ms IS NULL AND (role = 'engine' OR id IN (kinds.prober, $3)))
  FROM rewheel.kinds WHERE name = $1 FOR UPDATE;
