-- claim: leases due jobs of a lane to a holder.

-- Positions in a visit.
local LANE, LIMIT, TIMEOUT_OF_KIND, CEILING, GRACE = 1, 2, 3, 4, 5

-- The jobs that were leased: ids, bodies, muts, leases, and large payloads.
local taken = { {}, {}, {}, {}, {} }

-- Returns how many jobs of a kind a holder may claim: all, none, or one to test whether a parked kind works again.
local function open_for(holder, kind)
    local row = redis.call('HGET', P .. 'kinds', kind)
    if not row or has(string.byte(row), 1) ~= 0 then
        return 0
    end
    if has(string.byte(row), 2) == 0 then
        return FOREVER, false
    end
    local prober = struct.unpack('>c16', row, 22)
    if prober == holder and not redis.call('HGET', P .. 'probes', kind) then
        return 1, true
    end
    return 0
end

-- Leases the jobs at these places, except those whose deadline has passed. Returns how many of them it skipped.
local function lease_places(holder, visit, places)
    local ids, members = {}, {}
    for at = 1, #places, 2 do
        members[#members + 1] = places[at]
        ids[#ids + 1] = string.sub(places[at], 7)
    end
    local bodies, muts = redis.call('HMGET', P .. 'body', unpack(ids)), redis.call('HMGET', P .. 'mut', unpack(ids))
    local leases, held, gone, skipped = {}, {}, {}, 0
    local ids_to, bodies_to, muts_to, leases_to, bigs_to = taken[1], taken[2], taken[3], taken[4], taken[5]
    local lane, usual, usual_overdue = visit[LANE], nil, plus(plus(now, visit[TIMEOUT_OF_KIND]), visit[GRACE])
    for at, id in ipairs(ids) do
        local body, mut, due = bodies[at], muts[at], tonumber(places[2 * at])
        local flags = body and string.byte(body, 2)
        if not body then
            -- A place without a job: nothing can be claimed there.
            gone[#gone + 1] = members[at]
        elseif has(flags, DEADLINE) ~= 0 and struct.unpack('>d', body, 27) <= now then
            skipped = skipped + 1
        else
            local lease, overdue
            if flags == 0 and not mut and due <= now then
                -- Most jobs: never changed, nothing special. One text serves all of them.
                usual = usual or struct.pack(LEASE, holder, next_fence(0), 2, now, usual_overdue, 0, 0) .. lane
                lease, overdue = usual, usual_overdue
            else
                local fence, version, _ = 0, 1, nil
                if mut then
                    _, fence, version = struct.unpack('>c1dd', mut)
                    flags = has(flags, 127) + CHANGED
                end
                local timeout = visit[TIMEOUT_OF_KIND]
                if has(flags, TIMEOUT) ~= 0 then
                    timeout = math.min(read_body(body).timeout, visit[CEILING])
                end
                overdue = plus(plus(math.max(now, due), timeout), visit[GRACE])
                lease = struct.pack(LEASE, holder, next_fence(fence), version + 1, now, overdue, 0, flags) .. lane
            end
            leases[#leases + 1] = id
            leases[#leases + 1] = lease
            held[#held + 1] = overdue
            held[#held + 1] = id
            gone[#gone + 1] = members[at]
            local n = #ids_to + 1
            ids_to[n], bodies_to[n], muts_to[n], leases_to[n] = id, body, mut, lease
            bigs_to[n] = has(flags, BIG) ~= 0 and redis.call('HGET', P .. 'big', id) or false
        end
    end
    many('HSET', 'lease', leases)
    many('ZADD', 'held:' .. holder, held)
    many('ZREM', 'l:' .. lane, gone)
    return skipped, #leases / 2
end

-- Leases jobs of a lane that are due until then, at most `room`. Returns how many.
local function visit_lane(holder, visit, till, room)
    local kind = names(visit[LANE])
    local open, probes = open_for(holder, kind)
    room = math.min(room, open)
    local from, leased = 0, 0
    -- Jobs whose deadline has passed wait for `deadlines`. A claim passes over a bounded number of them.
    while leased < room and from < 2 * SLICE do
        -- In slices: the arguments of a command are limited.
        local most = math.min(room - leased, SLICE / 2)
        local places = redis.call('ZRANGEBYSCORE', P .. 'l:' .. visit[LANE], '-inf', till, 'WITHSCORES', 'LIMIT', from, most)
        if #places == 0 then
            break
        end
        local skipped, more = lease_places(holder, visit, places)
        from, leased = from + skipped, leased + more
        if #places < 2 * most then
            break
        end
    end
    if leased > 0 then
        if probes then
            redis.call('HSET', P .. 'probes', kind, taken[1][#taken[1]])
        end
        shift(visit[LANE], 's', 'l', leased)
        close_if_empty(visit[LANE])
        redis.call('SADD', P .. 'holding', holder)
    end
    return leased
end
