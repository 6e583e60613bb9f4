-- probe_kind: checks whether holder $2 may still claim its probe job of kind $1, and locks the kind.
SELECT 1 FROM rewheel.kinds
 WHERE name = $1 AND NOT paused AND parked_ms IS NOT NULL AND prober = $2 AND probe_job IS NULL
   FOR UPDATE;
