-- claim_limited: leases jobs that are due now to a living holder, within the limits of kinds and tenants for the whole fleet.
-- Arguments: offset, holder, limit, visits as in claim each with the list of its limits, limits {counter, start, most or false, interval}.
-- {include base spare holder lane job claim}
local holder, left, visits, limits = A[2], A[3], A[4], A[5]
if not alive(holder) then
    return redis.error_reply('DEAD the holder is dead or unknown')
end
local free, used, last, more, starts = {}, {}, {}, {}, {}
for at, limit in ipairs(limits) do
    local counter, start, most, interval = limit[1], limit[2], limit[3], limit[4]
    used[at] = tonumber(redis.call('HGET', P .. 'counts', counter) or 0)
    last[at] = tonumber(redis.call('HGET', P .. 'starts', start) or '')
    free[at] = most and math.max(most - used[at], 0) or FOREVER
    if interval > 0 then
        -- After the clock was set back, the last start is in the future: it counts as now.
        local wait = last[at] and plus(math.min(last[at], now), interval) > now
        free[at] = wait and 0 or math.min(free[at], 1)
    end
    starts[at] = last[at] ~= nil and last[at] > now
    more[at] = 0
end
for _, visit in ipairs(visits) do
    local covering = visit[6]
    local room = math.min(visit[2], left)
    for _, at in ipairs(covering) do
        room = math.min(room, free[at])
    end
    local leased = visit_lane(holder, visit, now, room)
    left = left - leased
    for _, at in ipairs(covering) do
        free[at] = free[at] - leased
        used[at] = used[at] + leased
        if leased > 0 then
            last[at], starts[at] = now, true
        end
        if leased == room then
            more[at] = 1
        end
    end
end
for at, limit in ipairs(limits) do
    if starts[at] then
        redis.call('HSET', P .. 'starts', limit[2], digits(now))
    end
    used[at] = { used[at], last[at] and digits(starts[at] and now or last[at]) or false, more[at] }
end
write_counts()
return { digits(now), taken, used }
