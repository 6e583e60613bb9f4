-- keep_sample: writes the result of the count that began at a time, unless another one has begun since.
UPDATE rewheel_samples SET taken_ms = begun_ms, tallies = ? WHERE one = 1 AND begun_ms = ?
