-- settle_seen_dead: as settle_seen, for dead letters.
SELECT id, state, settled_by, settled_fence, 0, fence, due_ms, 0 FROM rewheel_dead WHERE id IN ({list}) LOCK IN SHARE MODE;
