-- find_format: reads the largest format that a stored job has used.
SELECT format FROM rewheel_format WHERE one = 1;
