-- settle_seen_finished: as settle_seen, for finished jobs.
SELECT state, settled_by, settled_fence, 0, fence, due_ms, 0 FROM rewheel_finished WHERE id = ? LOCK IN SHARE MODE;
