-- delete_limit: deletes a limit that prune_limits found.
DELETE FROM rewheel_limits WHERE scope = ? AND name = ?
