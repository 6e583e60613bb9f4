-- lane: the sorted set of each lane, the counters of kinds and tenants, and which lanes changed.

local LIVE = { s = true, l = true, p = true }
local lane_names, counted, heads, touched, hastened = {}, {}, {}, {}, {}
-- Whether watchers are woken, even if no lane changed.
local wakes = false

-- Returns the kind and the tenant of a lane.
local function names(lane)
    local known = lane_names[lane]
    if not known then
        local kind, tenant = string.match(lane, '^(%Z*)%z\1?(%Z*)%z')
        known = { kind, tenant }
        lane_names[lane] = known
    end
    return known[1], known[2]
end

local function count(field, change)
    counted[field] = (counted[field] or 0) + change
end

-- How many jobs of each lane went from one state to another: by the old state, the new state and the lane.
local moves = {}

-- Counts jobs of a lane that went from one state to another; an ended or missing job has no state.
local function shift(lane, from, to, jobs)
    local leaving = moves[from or '']
    if not leaving then
        leaving = {}
        moves[from or ''] = leaving
    end
    local entering = leaving[to or '']
    if not entering then
        entering = {}
        leaving[to or ''] = entering
    end
    entering[lane] = (entering[lane] or 0) + jobs
end

local function add_move(lane, from, to, jobs)
    local kind, tenant = names(lane)
    if from ~= '' then
        count('k' .. kind .. '\0' .. from, -jobs)
    end
    if to ~= '' then
        count('k' .. kind .. '\0' .. to, jobs)
    end
    if tenant ~= '' then
        local live = (LIVE[to] and jobs or 0) - (LIVE[from] and jobs or 0)
        local held = (to == 'l' and jobs or 0) - (from == 'l' and jobs or 0)
        count('t' .. tenant .. '\0live', live)
        count('t' .. tenant .. '\0held', held)
    end
end

local function write_counts()
    for from, leaving in pairs(moves) do
        for to, lanes in pairs(leaving) do
            for lane, jobs in pairs(lanes) do
                add_move(lane, from, to, jobs)
            end
        end
    end
    for field, change in pairs(counted) do
        if change ~= 0 and redis.call('HINCRBY', P .. 'counts', field, change) == 0 then
            redis.call('HDEL', P .. 'counts', field)
        end
    end
    moves, counted = {}, {}
end

-- Returns when the first job of a lane is due, or false.
local function head_of(lane)
    local head = heads[lane]
    if head == nil then
        local first = redis.call('ZRANGE', P .. 'l:' .. lane, 0, 0, 'WITHSCORES')
        head = first[2] and tonumber(first[2]) or false
        heads[lane] = head
    end
    return head
end

-- Records that a lane gets a job that is due at this time. Nodes elsewhere need to know only if it is the first of its lane.
local function touch(lane, due)
    touched[lane] = true
    wakes = true
    local head = head_of(lane)
    if not head then
        redis.call('ZADD', P .. 'lanes', 0, lane)
    end
    if not head or due < head then
        hastened[lane] = true
        head = due
    end
    heads[lane] = head
end

-- Forgets a lane that has no job left.
local function close_if_empty(lane)
    if redis.call('EXISTS', P .. 'l:' .. lane) == 0 then
        redis.call('ZREM', P .. 'lanes', lane)
        heads[lane] = nil
    end
end

-- Tells the nodes elsewhere what changed, and returns the changed lanes for this node. More lanes than a report may have are no list.
local function report(origin)
    if not wakes then
        return false
    end
    local near, far = {}, {}
    for lane in pairs(touched) do
        near[#near + 1] = lane
    end
    for lane in pairs(hastened) do
        far[#far + 1] = lane
    end
    if #far > 0 or #near == 0 then
        -- Everything is written: a user who may not publish gets no error for that, and other nodes poll.
        redis.pcall('PUBLISH', P .. 'wake', cmsgpack.pack({ origin, #far <= 1000 and far or false }))
    end
    return #near <= 1000 and near or { '*' }
end

-- Appends a line to the ledger, and adds up the oldest lines if there are very many.
local function write_ledger(submitted, pruned)
    if submitted == 0 and pruned == 0 then
        return
    end
    local lines = redis.call('RPUSH', P .. 'ledger', digits(submitted) .. ':' .. digits(pruned))
    if lines > 5000 then
        submitted, pruned = 0, 0
        for _, line in ipairs(redis.call('LPOP', P .. 'ledger', SLICE)) do
            local more, less = string.match(line, '(%d+):(%d+)')
            submitted, pruned = submitted + more, pruned + less
        end
        redis.call('LPUSH', P .. 'ledger', digits(submitted) .. ':' .. digits(pruned))
    end
end
