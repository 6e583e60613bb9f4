-- edit_live: writes the edit that the caller decided in this transaction to a live job. Contract: OperateStore::change.
UPDATE jobs SET lane = ?2, state = ?3, due_ms = ?4, because = ?5, deadline_ms = ?6, attempts_max = ?7, wanted = ?8,
                payload = coalesce(?9, payload), version = version + 1
 WHERE id = ?1;
