-- insert_grouped: stores which jobs have a group.
INSERT INTO rewheel_grouped (group_key, job) VALUES {rows}(?, ?)
