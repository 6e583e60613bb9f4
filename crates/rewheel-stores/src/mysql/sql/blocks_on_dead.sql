-- blocks_on_dead: reads whether a dead letter of a kind holds up its group.
SELECT blocks_on_dead FROM rewheel_kinds WHERE name = ?;
