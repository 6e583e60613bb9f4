-- insert_unreadable: stores why a job was set aside.
INSERT INTO rewheel_unreadable (job, at_ms, reason) VALUES (?, ?, ?)
    ON DUPLICATE KEY UPDATE at_ms = VALUES(at_ms), reason = VALUES(reason);
