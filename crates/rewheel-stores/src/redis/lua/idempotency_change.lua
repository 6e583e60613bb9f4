-- idempotency_change: renews, finishes or releases the run of a key, if the run still has it.
-- Arguments: offset, what, key, run, millis, answer.
-- {include base spare}
local row = redis.call('HGET', P .. 'idem', A[3])
if not row or string.sub(row, 33, 48) ~= A[4] then
    return 'lost'
end
local lease, expires = struct.unpack('>dd', row, 49)
if lease < 0 then
    return 'already'
end
if A[2] == 'release' then
    redis.call('HDEL', P .. 'idem', A[3])
    redis.call('ZREM', P .. 'idem_ends', A[3])
    return 'done'
end
local ends
if A[2] == 'renew' then
    lease = plus(now, A[5])
    ends = math.max(lease, expires)
    redis.call('HSET', P .. 'idem', A[3], string.sub(row, 1, 48) .. struct.pack('>dd', lease, ends))
else
    ends = plus(now, A[5])
    redis.call('HSET', P .. 'idem', A[3], string.sub(row, 1, 48) .. struct.pack('>dd', -1, ends) .. A[6])
end
redis.call('ZADD', P .. 'idem_ends', ends, A[3])
return 'done'
