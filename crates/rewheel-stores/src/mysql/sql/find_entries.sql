-- find_entries: reads whether kinds may be claimed, and by which holder.
SELECT name, paused, parked_ms IS NOT NULL, prober, probe_job FROM rewheel_kinds FORCE INDEX (PRIMARY) WHERE name IN ({list});
