-- use_probe: the prober of kind $1 got job $2 for its right.
UPDATE rewheel.kinds SET probe_job = $2 WHERE name = $1;
