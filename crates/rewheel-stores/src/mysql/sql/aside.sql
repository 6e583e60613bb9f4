-- aside: moves leased jobs, which the caller has locked, out of the range that claims read.
UPDATE rewheel_jobs FORCE INDEX (id) SET lane = -lane WHERE id IN ({list}) AND lane > 0 AND state = 1;
