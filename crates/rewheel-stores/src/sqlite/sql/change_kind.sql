-- change_kind: writes the changes that the caller decided in this transaction. Contract: KindStore::change_kind.
UPDATE kinds SET paused = ?2, parked_ms = ?3, parked_reason = ?4, prober = ?5, generation = ?6, suspects = ?7, forced = ?8, version = ?9, changed = ?10,
                 parked_until_ms = ?11,
                 probe_job = CASE WHEN generation = ?6 THEN probe_job END
 WHERE name = ?1;
