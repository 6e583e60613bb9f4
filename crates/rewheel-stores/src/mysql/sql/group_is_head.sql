-- group_is_head: checks whether a job is the head of its line.
SELECT 1 FROM rewheel_lines WHERE head = ?;
