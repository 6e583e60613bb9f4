-- reserve_drop: deletes the reservations of holder $2 and of dead holders for tenant $1. Contract: SubmitStore::reserve.
DELETE FROM rewheel.reserved
 WHERE tenant = $1
   AND (holder = $2 OR NOT EXISTS (SELECT FROM rewheel.holders WHERE seq = reserved.holder AND died_ms IS NULL));
