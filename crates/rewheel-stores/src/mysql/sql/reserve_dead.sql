-- reserve_dead: finds the reservations of dead holders for a tenant. Apart from the deletion: a DELETE that looks into another table
-- locks the rows that it reads, and would wait for heartbeats. Contract: SubmitStore::reserve.
SELECT reserved.holder FROM rewheel_reserved AS reserved LEFT JOIN rewheel_holders AS holders ON holders.seq = reserved.holder
 WHERE reserved.tenant = ? AND reserved.holder <> 0 AND (holders.seq IS NULL OR holders.died_ms IS NOT NULL)
