-- end_sample: writes the result of the count that began at $1, and its cost $2. If the tallies $3 are NULL, the count failed and the old
-- tallies stay.
UPDATE rewheel.samples SET counting = false, cost_ms = $2, taken_ms = CASE WHEN $3::text IS NULL THEN taken_ms ELSE $1 END,
                           tallies = coalesce($3, tallies)
 WHERE begun_ms = $1;
