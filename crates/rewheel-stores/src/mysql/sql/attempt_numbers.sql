-- attempt_numbers: reads the attempt records of a job, the oldest first.
SELECT seq, dropped FROM rewheel_attempts WHERE job = ? ORDER BY seq FOR UPDATE;
