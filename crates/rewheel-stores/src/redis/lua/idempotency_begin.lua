-- idempotency_begin: takes a key if it is as the caller has read it; otherwise returns what it is now.
-- Arguments: offset, key, seen or false, fingerprint, run, lease, keep.
-- {include base}
local row = redis.call('HGET', P .. 'idem', A[2])
if (row or false) ~= A[3] then
    return { digits(now), row }
end
local lease = plus(now, A[6])
-- A lease never ends later than its key.
local expires = math.max(lease, plus(now, A[7]))
redis.call('HSET', P .. 'idem', A[2], A[4] .. A[5] .. struct.pack('>dd', lease, expires))
redis.call('ZADD', P .. 'idem_ends', expires, A[2])
return 1
