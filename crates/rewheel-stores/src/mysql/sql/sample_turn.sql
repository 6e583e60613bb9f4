-- sample_turn: reads and locks when the last count began and what it cost, to decide whether the next one is due.
SELECT begun_ms, counting, cost_ms FROM rewheel_samples WHERE one = 1 FOR UPDATE
