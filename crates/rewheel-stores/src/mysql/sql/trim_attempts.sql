-- trim_attempts: deletes attempt records. Contract: WorkStore::settle.
DELETE attempts FROM rewheel_attempts attempts FORCE INDEX (PRIMARY) WHERE attempts.seq IN ({list}) AND attempts.job = ?;
