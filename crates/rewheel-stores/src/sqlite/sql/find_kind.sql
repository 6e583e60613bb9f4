-- find_kind: reads whether kind ?1 may be claimed, and by which holder.
SELECT paused, parked_ms IS NOT NULL, prober, probe_job FROM kinds WHERE name = ?1;
