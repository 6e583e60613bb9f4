-- join: registers a holder; repeating it changes nothing.
-- Arguments: offset, holder, lease_ttl, format, role, name, owner.
-- {include base spare holder}
local raw = redis.call('HGET', P .. 'holders', A[2])
if raw then
    if struct.unpack('>d', raw) ~= 0 then
        return redis.error_reply('DEAD the holder is dead or unknown')
    end
    return digits(now)
end
if A[4] < tonumber(redis.call('HGET', P .. 'meta', 'format') or 0) then
    return redis.error_reply('TOOOLD the release of ' .. A[6] .. ' is too old for jobs in this store')
end
redis.call('HSET', P .. 'holders', A[2],
    struct.pack(HOLDER, 0, 0, now, now, A[3], A[4], A[5], #A[6], A[6], #A[7], A[7]))
return digits(now)
