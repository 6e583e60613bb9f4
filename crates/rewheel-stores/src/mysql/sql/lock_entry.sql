-- lock_entry: reads whether a parked kind may be probed, and by which holder. Two claims must not both take the probe.
SELECT name, paused, parked_ms IS NOT NULL, prober, probe_job FROM rewheel_kinds WHERE name = ? FOR UPDATE;
