-- group_head: writes the head of a line and its turn.
UPDATE rewheel_lines SET head = ?, turn = ?, idle_ms = NULL WHERE group_key = ? AND kind = ? AND tenant = ?;
