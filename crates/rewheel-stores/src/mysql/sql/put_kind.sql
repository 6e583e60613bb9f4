-- put_kind: writes the settings of kinds, new or existing; pausing and parking stay unchanged. A new kind starts with the given version.
-- Contract: KindStore::put_kinds.
INSERT INTO rewheel_kinds (name, settings, takeovers_max, paused, generation, suspects, forced, version, changed, blocks_on_dead)
VALUES {rows}(?, ?, ?, 0, 0, '', 0, ?, ?, ?) {after}
ON DUPLICATE KEY UPDATE settings = VALUES(settings), takeovers_max = VALUES(takeovers_max), version = version + 1,
                        changed = VALUES(changed), blocks_on_dead = VALUES(blocks_on_dead)
