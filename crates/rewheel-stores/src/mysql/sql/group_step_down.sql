-- group_step_down: a line has no head any more.
UPDATE rewheel_lines SET head = NULL WHERE group_key = ? AND kind = ? AND tenant = ?;
