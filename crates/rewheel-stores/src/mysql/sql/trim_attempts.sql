-- trim_attempts: deletes attempt records. Contract: WorkStore::settle.
DELETE FROM rewheel_attempts WHERE seq IN ({list}) AND job = ?;
