-- sample_turn: what decides whose turn it is to count.
SELECT begun_ms, counting, cost_ms FROM samples;
