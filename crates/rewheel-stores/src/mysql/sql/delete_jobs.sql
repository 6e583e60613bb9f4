-- delete_jobs: deletes live jobs of a lane that were moved to another table or end without retention. Contract: the
-- caller compares the number of deleted rows. The holder is part of the condition: without it the server scans a small table, and waits for
-- rows of others.
DELETE jobs FROM rewheel_jobs jobs FORCE INDEX (PRIMARY) WHERE jobs.lane = ? AND jobs.place IN ({list}) AND jobs.holder = ? AND jobs.state = ?;
