-- epoch: returns the floor of fences, and when the store was created. Raises the floor if the server is another process than before: it
-- may have forgotten what that one did. Also if the caller knows another time of creation: the server has forgotten everything.
-- Arguments: offset, server, created or false.
-- {include base spare}
local known = redis.call('HMGET', P .. 'meta', 'server', 'floor', 'created')
local server, floor, created = known[1], tonumber(known[2] or 0), tonumber(known[3] or now)
local is_other = server and server ~= A[2]
local is_empty = A[3] and A[3] ~= created and floor < created
if is_other or is_empty then
    -- A time: it grows even if the server has forgotten earlier epochs. No job is leased more than once in a millisecond. The sum is for
    -- a clock that was set back.
    floor = math.max(now, floor + 1000000)
end
-- A store that an older release created has no time of creation: it gets one, or the next connection would get another.
if is_other or is_empty or not server or not known[3] then
    redis.call('HSET', P .. 'meta', 'server', A[2], 'floor', digits(floor), 'created', digits(created))
end
return { digits(floor), digits(created) }
