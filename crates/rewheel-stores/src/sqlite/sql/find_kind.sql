-- find_kind: whether kind ?1 may be claimed, and by whom.
SELECT paused, parked_ms IS NOT NULL, prober, probe_job FROM kinds WHERE name = ?1;
