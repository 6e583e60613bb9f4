-- use_probe: records that the prober of kind ?1 claimed job ?2 as its probe.
UPDATE kinds SET probe_job = ?2 WHERE name = ?1;
