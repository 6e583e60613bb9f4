-- end_sample: writes the cost of the count that began at a time.
UPDATE rewheel_samples SET counting = 0, cost_ms = ? WHERE one = 1 AND begun_ms = ?
