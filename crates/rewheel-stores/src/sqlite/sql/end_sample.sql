-- end_sample: writes what the count that began at ?1 found, and what it cost, ?2. Without tallies, ?3, it failed: the old ones stay.
UPDATE samples SET counting = 0, cost_ms = ?2, taken_ms = CASE WHEN ?3 IS NULL THEN taken_ms ELSE ?1 END,
                   tallies = coalesce(?3, tallies)
 WHERE begun_ms = ?1;
