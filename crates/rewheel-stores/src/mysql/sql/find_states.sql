-- find_states: reads the states of jobs in any table.
SELECT id, CASE state WHEN 1 THEN 'leased' WHEN 2 THEN 'paused' ELSE 'scheduled' END FROM rewheel_jobs FORCE INDEX (id) WHERE id IN ({list});
