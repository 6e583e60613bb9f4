-- next_kind_change: writes the number of a change, and a second time if it deletes a kind; otherwise NULL.
UPDATE rewheel_kind_changes SET latest = ?, deleted = COALESCE(?, deleted) WHERE one = 1
