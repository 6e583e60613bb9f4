-- epoch: returns the floor of fences. Raises it if the server is another process than before: it may have forgotten what that one did.
-- Arguments: offset, server.
-- {include base spare}
local known = redis.call('HMGET', P .. 'meta', 'server', 'floor')
local server, floor = known[1], tonumber(known[2] or 0)
if server ~= A[2] then
    if server then
        -- A time: it grows even if the server has forgotten earlier epochs. No job is leased more than once in a millisecond. The sum
        -- is for a clock that was set back.
        floor = math.max(now, floor + 1000000)
    end
    redis.call('HSET', P .. 'meta', 'server', A[2], 'floor', digits(floor))
end
return digits(floor)
