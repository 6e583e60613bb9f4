-- limit_waits: returns how much of each limit is in use, and its last start.
-- Arguments: offset, limits {counter, start}.
-- {include base}
local used = {}
for at, limit in ipairs(A[2]) do
    used[at] = { tonumber(redis.call('HGET', P .. 'counts', limit[1]) or 0), redis.call('HGET', P .. 'starts', limit[2]) }
end
return { digits(now), used }
