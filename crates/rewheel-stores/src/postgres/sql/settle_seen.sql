-- settle_seen: reads which holder settled jobs last, to tell a repeated settle from a late one.
SELECT id, state, settled_by, settled_fence, holder, fence, due_ms, coalesce(settled_kept, false)
  FROM rewheel.jobs WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id, state, settled_by, settled_fence, NULL, fence, due_ms, false FROM rewheel.dead WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id, state, settled_by, settled_fence, NULL, fence, due_ms, false FROM rewheel.finished WHERE id = ANY ($1::uuid[]);
