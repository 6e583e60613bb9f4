-- lock_kind: locks and reads one kind for a change, and reads the time, all live engines, and the kind's prober and holder $3 if they are
-- alive. The lock lets one transaction at a time change the kind.
SELECT rewheel.now_ms() + $2, name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced,
       version, parked_until_ms, blocks_on_dead,
       ARRAY (SELECT id FROM rewheel.holders
               WHERE died_ms IS NULL AND (role = 'engine' OR id IN (kinds.prober, $3)))
  FROM rewheel.kinds WHERE name = $1 FOR UPDATE;
