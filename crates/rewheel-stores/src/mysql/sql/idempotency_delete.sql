-- idempotency_delete: deletes keys, given as a list in JSON. Contract: IdempotencyStore::prune.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(64) PATH '$')) AS given
       STRAIGHT_JOIN rewheel_idempotency AS gone ON gone.`key` = UNHEX(given.id)
