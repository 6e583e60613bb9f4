-- group_idle: a line has no members any more.
UPDATE rewheel_lines SET idle_ms = ? WHERE group_key = ? AND kind = ? AND tenant = ?;
