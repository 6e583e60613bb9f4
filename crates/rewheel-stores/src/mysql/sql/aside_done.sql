-- aside_done: the jobs of a claim have left the range that claims read.
UPDATE rewheel_claims SET aside = 1 WHERE seq = ?;
