-- lock_format: reads the largest format that a stored job has used, and keeps others from registering holders or using a larger one.
SELECT format FROM rewheel_format WHERE one = 1 FOR UPDATE;
