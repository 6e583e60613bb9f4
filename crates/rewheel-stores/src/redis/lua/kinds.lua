-- kinds: returns kinds that changed since, all of them if one was deleted since, or those that are named; and the time.
-- Arguments: offset, since or false, names or false.
-- {include base}
local since, names = A[2], A[3]
if names then
    return { digits(now), '0', 1, names, fields('kinds', names) }
end
local at = tonumber(redis.call('HGET', P .. 'meta', 'kinds') or 0)
local deleted = tonumber(redis.call('HGET', P .. 'meta', 'kind_deleted') or 0)
local all = since == 0 or since > at or deleted > since
names = redis.call('ZRANGEBYSCORE', P .. 'kinds_changed', all and '-inf' or '(' .. digits(since), '+inf')
return { digits(now), digits(at), all and 1 or 0, names, fields('kinds', names) }
