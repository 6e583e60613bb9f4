-- put_kinds: writes a kind that still is as the caller has read it, with an audit entry; or deletes it.
-- Arguments: offset, origin, name, before or false, after or false, note or false, generation_changed.
-- {include base spare holder lane audit kind_use}
local name, before, after = A[3], A[4], A[5]
if (redis.call('HGET', P .. 'kinds', name) or false) ~= before then
    return 'again'
end
local change = nil
if after then
    redis.call('HSET', P .. 'kinds', name, after)
    redis.call('ZADD', P .. 'kinds_changed', next_number('kinds'), name)
else
    if kind_is_used(name) then
        return 'used'
    end
    redis.call('HDEL', P .. 'kinds', name)
    redis.call('HDEL', P .. 'budgets', name)
    redis.call('ZREM', P .. 'kinds_changed', name)
    change = next_number('kinds')
    redis.call('HSET', P .. 'meta', 'kind_deleted', digits(change))
end
if A[7] == 1 then
    redis.call('HDEL', P .. 'probes', name)
end
if A[6] then
    note_made(A[6])
end
wakes = true
report(A[2])
return 'done'
