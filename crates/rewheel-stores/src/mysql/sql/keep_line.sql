-- keep_line: a line that prune_lines found has members: a user's transaction stored them. The next release gives it a head.
UPDATE rewheel_lines SET idle_ms = NULL WHERE group_key = ? AND kind = ? AND tenant = ?;
