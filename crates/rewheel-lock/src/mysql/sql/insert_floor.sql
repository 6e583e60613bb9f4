-- insert_floor: begins with no token. Another process may have done it before.
INSERT INTO rewheel_lock_floor (one, token) VALUES (1, 0) ON DUPLICATE KEY UPDATE one = 1
