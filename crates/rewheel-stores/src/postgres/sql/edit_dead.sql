-- edit_dead: writes the edit that the caller decided in this transaction to a dead letter. Contract: OperateStore::change.
UPDATE rewheel.dead SET lane = $2, due_ms = $3, because = $4, deadline_ms = $5, attempts_max = $6,
                        payload = coalesce($7, payload), version = version + 1
 WHERE id = $1;
