-- find_kinds: checks which of these kinds exist.
SELECT name FROM rewheel.kinds WHERE name = ANY ($1::text[]);
