-- aside: moves leased jobs out of the range that claims read.
UPDATE rewheel_jobs FORCE INDEX (id) SET lane = -lane WHERE id IN ({list}) AND lane > 0 AND state = 1 AND claim = ?;
