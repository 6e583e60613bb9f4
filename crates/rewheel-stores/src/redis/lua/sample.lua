-- sample: reads the cached counts; begins a count if one is due; or ends it.
-- Arguments: offset, what, then for `begin`: interval_min, cost_factor, count_max; for `end`: begun, cost, text or false.
-- {include base spare}
local row = P .. 'sample'
if A[2] == 'read' then
    return { digits(now), redis.call('HMGET', row, 'taken', 'text') }
end
if A[2] == 'begin' then
    local known = redis.call('HMGET', row, 'begun', 'counting', 'cost')
    local begun, cost = tonumber(known[1] or ''), tonumber(known[3] or 0)
    if begun then
        local wait = math.max(A[3], cost * A[4])
        if known[2] == '1' then
            wait = math.max(wait, A[5])
        end
        -- A clock that was set back must not stop the counts.
        if now - begun < wait and begun <= now then
            return false
        end
    end
    redis.call('HSET', row, 'begun', digits(now), 'counting', '1')
    return digits(now)
end
if redis.call('HGET', row, 'begun') == A[3] then
    redis.call('HSET', row, 'counting', '0', 'cost', digits(A[4]))
    if A[5] then
        redis.call('HSET', row, 'taken', A[3], 'text', A[5])
    end
end
return 1
