-- insert_unreadable: stores why job ?1 was set aside, at ?2.
INSERT INTO unreadable (job, at_ms, reason) VALUES (?1, ?2, ?3)
ON CONFLICT (job) DO UPDATE SET at_ms = excluded.at_ms, reason = excluded.reason;
