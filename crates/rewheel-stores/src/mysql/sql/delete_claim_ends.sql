-- delete_claim_ends: deletes notes that were subtracted.
DELETE ends FROM rewheel_claim_ends ends FORCE INDEX (PRIMARY) WHERE ends.seq IN ({list});
