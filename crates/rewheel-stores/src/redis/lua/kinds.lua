-- kinds: returns kinds that changed since, all of them if one was deleted since, or those that are named; and the time.
-- Arguments: offset, since or false, names or false, after (the change after which this part begins) or false, limit.
-- Also returns the change at which the part ends.
-- {include base}
local since, named, after = A[2], A[3], A[4]
if named then
    return { digits(now), '0', 1, named, fields('kinds', named), '0' }
end
local at = tonumber(redis.call('HGET', P .. 'meta', 'kinds') or 0)
local deleted = tonumber(redis.call('HGET', P .. 'meta', 'kind_deleted') or 0)
local all = since == 0 or since > at or deleted > since
local from = after or (all and 0 or since)
local found = redis.call('ZRANGEBYSCORE', P .. 'kinds_changed', '(' .. digits(from), '+inf', 'WITHSCORES', 'LIMIT', 0, A[5])
local names, last = {}, '0'
for nth = 1, #found, 2 do
    names[#names + 1] = found[nth]
    last = found[nth + 1]
end
return { digits(now), digits(at), all and 1 or 0, names, fields('kinds', names), last }
