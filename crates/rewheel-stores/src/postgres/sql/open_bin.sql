-- open_bin: gives an empty bin to the jobs that expire from $1 until before $1 + $2, unless they have one. Returns whether they have
-- one. If two nodes do this at the same time, the second one does nothing and finds the bin next time.
WITH opened AS (
    INSERT INTO rewheel.bins (bin, width_ms, from_ms)
    SELECT nr, $2, $1 FROM generate_series(1, 19) AS nr
     WHERE NOT EXISTS (SELECT FROM rewheel.bins WHERE bins.bin = nr)
       AND NOT EXISTS (SELECT FROM rewheel.bins WHERE bins.width_ms = $2 AND bins.from_ms = $1)
     ORDER BY nr LIMIT 1
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT EXISTS (SELECT FROM opened) OR EXISTS (SELECT FROM rewheel.bins WHERE bins.width_ms = $2 AND bins.from_ms = $1);
