-- expire_holder: marks another holder as dead, if its lease has expired and it has not renewed it since.
-- Arguments: offset, by, other, renewals.
-- {include base spare holder}
if not alive(A[2]) then
    return redis.error_reply('DEAD the holder is dead or unknown')
end
local raw = redis.call('HGET', P .. 'holders', A[3])
if not raw then
    return 'dead'
end
local died, renewals, renewed, _, ttl = struct.unpack(HOLDER, raw)
if died ~= 0 then
    return 'dead'
end
if renewals ~= A[4] or plus(renewed, ttl) > now then
    return 'alive'
end
redis.call('HSET', P .. 'holders', A[3], struct.pack('>d', now) .. string.sub(raw, 9))
return 'expired'
