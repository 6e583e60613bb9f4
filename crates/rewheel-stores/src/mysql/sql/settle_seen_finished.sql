-- settle_seen_finished: as settle_seen, for finished jobs.
SELECT id, state, settled_by, settled_fence, 0, fence, due_ms, 0 FROM rewheel_finished WHERE id IN ({list}) LOCK IN SHARE MODE;
