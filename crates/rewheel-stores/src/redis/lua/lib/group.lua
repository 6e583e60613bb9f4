-- group: keeps the lines of groups. One job of a line, its head, may run; the others are blocked.

local function line_of(j)
    if not j.b.group then
        return nil
    end
    local kind, tenant = names(j.b.lane)
    return kind .. '\0' .. tenant .. '\0' .. j.b.group
end

-- Gives a new job its place in the line.
local function join_line(j)
    local line = line_of(j)
    redis.call('ZADD', P .. 'g:' .. line, next_number('place'), j.id)
    redis.call('ZADD', P .. 'lines', 0, line)
end

local function is_behind(j)
    local line = line_of(j)
    return line ~= nil and redis.call('HGET', P .. 'heads', line) ~= j.id
end

local function leave_line(line, id)
    redis.call('ZREM', P .. 'g:' .. line, id)
    redis.call('ZREM', P .. 'gd:' .. line, id)
    if redis.call('HGET', P .. 'heads', line) == id then
        redis.call('HDEL', P .. 'heads', line)
    end
    if redis.call('EXISTS', P .. 'g:' .. line, P .. 'gd:' .. line) == 0 then
        redis.call('ZREM', P .. 'lines', line)
    end
end

-- Returns whether a dead letter keeps its place in the lines of a kind.
local function dead_blocks(kind)
    local raw = redis.call('HGET', P .. 'kinds', kind)
    return raw and bit.band(string.byte(raw), 4) ~= 0
end

-- Returns the first member that can be read. Those that cannot are few, and a person repairs them.
local function first_of(name)
    local members = redis.call('ZRANGE', name, 0, 15, 'WITHSCORES')
    for at = 1, #members, 2 do
        if load({ members[at] })[members[at]] then
            return { id = members[at], place = tonumber(members[at + 1]) }
        end
    end
    return nil
end

-- Returns the job to release, if a line has no head.
local function next_of(line)
    local kind = string.match(line, '^(%Z*)%z')
    local blocks = dead_blocks(kind)
    local function counts(id)
        local j = load({ id })[id]
        return j and (blocks or state_of(j) ~= 'd')
    end
    local head = redis.call('HGET', P .. 'heads', line)
    if head and counts(head) then
        return nil
    end
    local letter = blocks and first_of(P .. 'gd:' .. line)
    local job = first_of(P .. 'g:' .. line)
    if letter and (not job or letter.place < job.place) then
        return letter.id
    end
    return job and job.id
end

-- Returns the next turn. It is a time, so that turns do not go back after a restore; two in one millisecond differ.
local function next_turn()
    local turn = math.max(now, tonumber(redis.call('HGET', P .. 'meta', 'turn') or 0) + 1)
    redis.call('HSET', P .. 'meta', 'turn', digits(turn))
    return turn
end

-- Gives a line without a head its smallest member as head. Returns whether it did.
local function release(line, waited)
    local id = next_of(line)
    if not id then
        return false
    end
    redis.call('HSET', P .. 'heads', line, id)
    local j = load({ id })[id]
    local m = j.m
    if waited and m.blocked == 1 and state_of(j) == 's' then
        m.due = math.max(m.due, now)
    end
    m.blocked, m.turn = 0, next_turn()
    commit(j)
    touched[j.b.lane] = true
    wakes = true
    return true
end
