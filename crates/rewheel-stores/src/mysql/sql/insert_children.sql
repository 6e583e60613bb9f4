-- insert_children: stores which job submitted a job. A job may be submitted again under its id after it was pruned.
INSERT INTO rewheel_children (parent, job) VALUES {rows}(?, ?)
