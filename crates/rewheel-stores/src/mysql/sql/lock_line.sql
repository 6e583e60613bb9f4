-- lock_line: reads and locks a line.
SELECT head, turn FROM rewheel_lines WHERE group_key = ? AND kind = ? AND tenant = ? FOR UPDATE;
