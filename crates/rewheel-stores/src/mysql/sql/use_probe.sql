-- use_probe: records that the prober of a kind claimed a job as its probe.
UPDATE rewheel_kinds SET probe_job = ? WHERE name = ?;
