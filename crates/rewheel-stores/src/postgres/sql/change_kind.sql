-- change_kind: writes the changes that the caller decided in this transaction. Contract: KindStore::change_kind.
UPDATE rewheel.kinds SET paused = $2, parked_ms = $3, parked_reason = $4, prober = $5, generation = $6, suspects = $7, forced = $8, version = $9,
                         parked_until_ms = $10,
                         changed = rewheel.change_number(),
                         probe_job = CASE WHEN generation = $6 THEN probe_job END
 WHERE name = $1;
