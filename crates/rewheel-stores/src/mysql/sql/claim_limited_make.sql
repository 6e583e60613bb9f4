-- claim_limited_make: creates the row of a limit. If another transaction does the same, this one is repeated.
INSERT INTO rewheel_limits (scope, name) VALUES (?, ?);
