-- settle_seen: reads which holder settled a live job last, to tell a repeated settle from a late one. A lock, so that a settle that is
-- under way is seen.
SELECT CASE state WHEN 1 THEN 'leased' WHEN 2 THEN 'paused' ELSE 'scheduled' END, settled_by, settled_fence, holder, fence, due_ms, settled_kept
  FROM rewheel_jobs FORCE INDEX (id) WHERE id = ? LOCK IN SHARE MODE;
