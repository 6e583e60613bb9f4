-- begin_sample: records that a count began.
UPDATE samples SET begun_ms = ?1, counting = 1;
