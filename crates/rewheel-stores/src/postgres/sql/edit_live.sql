-- edit_live: writes the edit that the caller decided in this transaction to a live job. Contract: OperateStore::change.
UPDATE rewheel.jobs SET lane = $2, state = $3, due_ms = $4, because = $5, deadline_ms = $6, attempts_max = $7, wanted = $8,
                        payload = coalesce($9, payload), version = version + 1,
                        shelf = CASE $3 WHEN 'scheduled'
                                               THEN CASE WHEN group_key IS NULL OR EXISTS (SELECT FROM rewheel.group_heads AS head WHERE head.job = jobs.id)
                                                    THEN 'due' ELSE 'blocked' END
                                               WHEN 'leased' THEN 'held' ELSE $3 END,
                        held_by = CASE $3 WHEN 'leased' THEN holder END,
                        held_until_ms = CASE $3 WHEN 'leased' THEN overdue_ms END
 WHERE id = $1
RETURNING lane, due_ms;
