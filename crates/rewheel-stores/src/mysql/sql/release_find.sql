-- release_find: reads and locks a live job that becomes the head of its line.
SELECT lane, place, state, due_ms FROM rewheel_jobs FORCE INDEX (id) WHERE id = ? FOR UPDATE;
