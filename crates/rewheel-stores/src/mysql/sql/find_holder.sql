-- find_holder: reads the number of a holder that is alive. The lock keeps others from marking it as dead until this transaction ends.
SELECT seq FROM rewheel_holders WHERE id = ? AND died_ms IS NULL LOCK IN SHARE MODE;
