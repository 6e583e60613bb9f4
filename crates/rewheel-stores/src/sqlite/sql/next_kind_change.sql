-- next_kind_change: returns the number of the next change of a kind; ?1 says whether it deletes the kind.
UPDATE kind_changes SET latest = latest + 1, deleted = CASE WHEN ?1 THEN latest + 1 ELSE deleted END RETURNING latest;
