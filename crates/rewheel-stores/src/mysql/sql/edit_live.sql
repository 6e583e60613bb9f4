-- edit_live: writes the edit that the caller decided in this transaction to a live job. Contract: OperateStore::change.
UPDATE rewheel_jobs FORCE INDEX (id)
   SET state = ?, due_ms = ?, because = ?, deadline_ms = ?, attempts_max = ?, wanted = ?, payload = COALESCE(?, payload), version = version + 1,
       lane = ?, place = ?
 WHERE id = ?;
