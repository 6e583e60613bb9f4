-- find_states_finished: reads the states of finished jobs.
SELECT id, state FROM rewheel_finished WHERE id IN ({list});
