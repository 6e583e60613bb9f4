-- unstage: stores the next part of a staged batch that was decided, or deletes it if it was not. Without a batch, takes one whose node
-- has left it.
-- Arguments: offset, origin, batch or false, stale_after.
-- {include base holder lane job audit group store}
local origin, id = A[2], A[3]
id = id or redis.call('ZRANGEBYSCORE', P .. 'staged', '-inf', now - A[4], 'LIMIT', 0, 1)[1]
-- The first command deletes: it works although the memory of the server is full, see `lib/spare.lua`.
local raw = id and redis.call('LPOP', P .. 'staged:' .. id)
if not raw then
    if id then
        redis.call('ZREM', P .. 'staged', id)
        redis.call('SREM', P .. 'decided', id)
    end
    return false
end
local jobs = cmsgpack.unpack(raw)[6]
local keyed, mine = {}, {}
for _, new in ipairs(jobs) do
    if new[FIELD] then
        keyed[#keyed + 1] = new[FIELD]
    end
end
for at, row in ipairs(fields('staged_keys', keyed)) do
    if row and string.sub(row, 1, 16) == id then
        mine[#mine + 1] = keyed[at]
    end
end
many('HDEL', 'staged_keys', mine)
if redis.call('SISMEMBER', P .. 'decided', id) == 0 then
    return { {}, false }
end
if A[3] then
    redis.call('ZADD', P .. 'staged', now, id)
end
local answers, _, _, batch = plan(jobs, true, nil, true)
apply(jobs, answers, batch, nil)
write_counts()
write_ledger(submitted, 0)
return { answers, report(origin) }
