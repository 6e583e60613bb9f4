-- reserve_lock: serializes reservations for a tenant: locks its row of holder 0, which no holder has. Contract: SubmitStore::reserve.
INSERT INTO rewheel_reserved (tenant, holder, jobs) VALUES (?, 0, 0) ON DUPLICATE KEY UPDATE jobs = 0
