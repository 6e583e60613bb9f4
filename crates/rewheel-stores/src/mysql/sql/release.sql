-- release: a job is the head of its line. A paused job stays paused.
UPDATE rewheel_jobs FORCE INDEX (id) SET turn = ?, due_ms = ?, state = ?, lane = ?, place = ? WHERE id = ?;
