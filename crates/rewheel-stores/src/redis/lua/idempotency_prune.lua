-- idempotency_prune: deletes keys whose time is over.
-- Arguments: offset, limit.
-- {include base spare}
local keys = redis.call('ZRANGEBYSCORE', P .. 'idem_ends', '-inf', now, 'LIMIT', 0, A[2])
many('HDEL', 'idem', keys)
many('ZREM', 'idem_ends', keys)
return #keys
