-- insert_line: creates a line. If another transaction does the same, this one is repeated.
INSERT INTO rewheel_lines (group_key, kind, tenant) VALUES (?, ?, ?);
