-- lock_kind_changes: reads the number of the latest change of a kind, and lets changes run one after the other: so a number never
-- becomes visible after a larger one.
SELECT latest FROM rewheel_kind_changes WHERE one = 1 FOR UPDATE
