-- prune_fleet: forgets holders that died long ago, and when jobs under old limits of the fleet started; looks at a part of both.
-- Arguments: offset, holders (where the part begins), room, holders_kept, starts (where the part begins), starts_kept, looks.
-- A part begins at '' or where the one before has ended; '0' is the end. Also returns how many holders it has forgotten.
-- {include base spare}
local function part(name, from)
    if from == '0' then
        return '0', {}
    end
    local found = redis.call('HSCAN', P .. name, from == '' and '0' or from, 'COUNT', A[7])
    return found[1], found[2]
end

local holders_next, holders = part('holders', A[2])
local starts_next, starts = part('starts', A[5])
local gone, old = {}, {}
for at = 1, #holders, 2 do
    local died = struct.unpack('>d', holders[at + 1])
    if died ~= 0 and plus(died, A[4]) <= now and #gone < A[3] then
        gone[#gone + 1] = holders[at]
    end
end
for at = 1, #starts, 2 do
    if plus(tonumber(starts[at + 1]), A[6]) <= now then
        old[#old + 1] = starts[at]
    end
end
-- A part may contain a holder twice.
local before = redis.call('HLEN', P .. 'holders')
many('HDEL', 'holders', gone)
many('HDEL', 'starts', old)
return { holders_next, starts_next, before - redis.call('HLEN', P .. 'holders') }
