-- begin_sample: records that a count began.
UPDATE rewheel_samples SET begun_ms = ?, counting = 1 WHERE one = 1
