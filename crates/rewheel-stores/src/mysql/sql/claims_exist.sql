-- claims_exist: reads which of the given claims exist. Contract: Store::risks.
SELECT seq FROM rewheel_claims FORCE INDEX (PRIMARY) WHERE seq IN ({list});
