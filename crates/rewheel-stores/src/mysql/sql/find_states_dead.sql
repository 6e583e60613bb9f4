-- find_states_dead: reads the states of dead letters.
SELECT id, state FROM rewheel_dead WHERE id IN ({list});
