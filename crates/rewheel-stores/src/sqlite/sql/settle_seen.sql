-- settle_seen: reads which holder settled a job last, to tell a repeated settle from a late one.
SELECT CASE state WHEN 'blocked' THEN 'scheduled' ELSE state END AS state, settled_by, settled_fence, holder, fence, due_ms, coalesce(settled_kept, 0) FROM jobs WHERE id = ?1
UNION ALL SELECT state, settled_by, settled_fence, NULL, fence, due_ms, 0 FROM dead WHERE id = ?1
UNION ALL SELECT state, settled_by, settled_fence, NULL, fence, due_ms, 0 FROM finished WHERE id = ?1;
