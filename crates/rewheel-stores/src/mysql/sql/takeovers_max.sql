-- takeovers_max: reads how many processes a job of a kind may crash.
SELECT takeovers_max FROM rewheel_kinds WHERE name = ?;
