-- edit_dead: writes the edit that the caller decided in this transaction to a dead letter. Contract: OperateStore::change.
UPDATE rewheel_dead SET lane = ?, due_ms = ?, because = ?, deadline_ms = ?, attempts_max = ?, payload = COALESCE(?, payload), version = version + 1
 WHERE id = ?;
