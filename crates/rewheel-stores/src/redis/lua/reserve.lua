-- reserve: replaces what a living holder has reserved of a tenant's limit. Reservations of the dead are dropped.
-- Arguments: offset, holder, tenant, jobs_max, on_the_way, needed, holders, ahead_max.
-- {include base holder}
local holder, tenant = A[2], A[3]
if not alive(holder) then
    return redis.error_reply('DEAD the holder is dead or unknown')
end
local name, others = P .. 'reserved:' .. tenant, 0
local rows = redis.call('HGETALL', name)
for at = 1, #rows, 2 do
    if rows[at] ~= holder then
        if alive(rows[at]) then
            others = others + rows[at + 1]
        else
            redis.call('HDEL', name, rows[at])
        end
    end
end
local live = tonumber(redis.call('HGET', P .. 'counts', 't' .. tenant .. '\0live') or 0)
local left = math.max(math.max(A[4] - live, 0) - others, 0)
local wanted = A[5] + A[6]
local ahead = 0
if A[6] > 0 then
    ahead = math.min(math.floor(math.max(left - wanted, 0) / (2 * math.max(A[7], 1))), A[8])
end
local granted = math.max(math.min(wanted + ahead, left), A[5])
if granted > 0 then
    redis.call('HSET', name, holder, digits(granted))
else
    redis.call('HDEL', name, holder)
end
return digits(granted)
