-- settle_seen: reads which holder settled live jobs last, to tell a repeated settle from a late one. A lock, so that a settle that is
-- under way is seen.
SELECT id, CASE state WHEN 1 THEN 'leased' WHEN 2 THEN 'paused' ELSE 'scheduled' END, settled_by, settled_fence, holder, fence, due_ms, settled_kept
  FROM rewheel_jobs FORCE INDEX (id) WHERE id IN ({list}) LOCK IN SHARE MODE;
