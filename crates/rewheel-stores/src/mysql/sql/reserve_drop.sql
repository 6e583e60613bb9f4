-- reserve_drop: deletes the reservation of a holder for a tenant. Contract: SubmitStore::reserve.
DELETE FROM rewheel_reserved WHERE tenant = ? AND holder = ?
