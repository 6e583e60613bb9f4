-- change_kind: writes the changes that the caller decided in this transaction. Contract: KindStore::change_kind.
UPDATE rewheel_kinds SET probe_job = CASE WHEN generation = ? THEN probe_job END,      -- first: MySQL assigns from left to right
                 paused = ?, parked_ms = ?, parked_reason = ?, prober = ?, generation = ?, suspects = ?, forced = ?, version = ?,
                 changed = ?, parked_until_ms = ?
 WHERE name = ?
