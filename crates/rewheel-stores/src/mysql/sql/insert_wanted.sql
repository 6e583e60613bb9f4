-- insert_wanted: a user requests something for a leased job.
INSERT INTO rewheel_wanted (holder, job) SELECT holder, id FROM rewheel_jobs FORCE INDEX (id) WHERE id = ?
    ON DUPLICATE KEY UPDATE rewheel_wanted.job = rewheel_wanted.job;
