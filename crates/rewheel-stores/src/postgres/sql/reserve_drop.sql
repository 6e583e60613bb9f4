-- reserve_drop: what holder $2 and the dead have set aside for tenant $1. Contract: SubmitStore::reserve.
DELETE FROM rewheel.reserved
 WHERE tenant = $1
   AND (holder = $2 OR NOT EXISTS (SELECT FROM rewheel.holders WHERE seq = reserved.holder AND died_ms IS NULL));
