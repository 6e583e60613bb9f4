-- aside_done: all jobs of claims have left the range that claims read.
UPDATE rewheel_claims FORCE INDEX (PRIMARY) SET aside = 1 WHERE seq IN ({list});
