-- delete_line: deletes a line that prune_lines found.
DELETE FROM rewheel_lines WHERE group_key = ? AND kind = ? AND tenant = ?;
