-- settle_drop: a success that is not kept.
DELETE FROM jobs WHERE id = ?1 AND state = 'leased' AND +holder = ?2 AND fence = ?3 RETURNING lane, attempt, key;
