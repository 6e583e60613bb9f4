-- job: reads jobs, and writes them with everything that refers to them. No other place changes an index of jobs one by one.
--
-- A job is one to three values: `body`, what was submitted; `mut`, what changed since, missing if nothing did; `lease`, while a holder
-- has it. While it is leased, its fence and version are those of the lease.

-- Flags of a body.
local KEY, DEADLINE, GROUP, PARENT, BIG, TIMEOUT, BEFORE = 1, 2, 4, 8, 16, 32, 64
-- In the flags of a lease: the job has a `mut`.
local CHANGED = 128
-- In `mut`: the job is due as submitted.
local SAME = -9007199254740992
-- How the last holder has let the job go, if it did.
local KEPT, SETTLED, GIVEN_BACK = 1, 2, 3
local HEAD = '>BBI2c6dddBc0I4'
local MUT = '>c1dddBI4I4I4I4dBdB'
local LEASE = '>c16ddddBB'
-- Payloads up to this size are part of the body.
local INLINE_MAX = 1024

local has = bit.band

-- Fences of this epoch are above the floor, so that none is given out again after the server has forgotten that it was. See `epoch.lua`.
local floor
local function next_fence(fence)
    floor = floor or tonumber(redis.call('HGET', P .. 'meta', 'floor') or 0)
    return math.max(fence, floor) + 1
end

local function read_body(raw)
    local b, at, _ = {}, nil, nil
    _, b.flags, b.head, b.seq, b.created, b.due, b.deadline, b.lane, b.before, at = struct.unpack(HEAD, raw)
    if has(b.flags, TIMEOUT) ~= 0 then
        b.timeout, at = struct.unpack('>d', raw, at)
    end
    if has(b.flags, KEY) ~= 0 then
        b.key, at = struct.unpack('>Bc0', raw, at)
    end
    b.group_at = at
    if has(b.flags, GROUP) ~= 0 then
        b.group, at = struct.unpack('>Bc0', raw, at)
    end
    if has(b.flags, PARENT) ~= 0 then
        b.parent = struct.unpack('>c16', raw, at)
    end
    return b
end

local function read_mut(raw, b)
    local m, at = {}, nil
    if not raw then
        m.state, m.fence, m.version, m.due, m.because = 's', 0, 1, b.due, 0
        m.attempt, m.before, m.takeovers, m.counted = b.before, b.before, 0, 0
        m.ended, m.blocked, m.turn, m.how = 0, b.group and 1 or 0, 0, 0
        m.failure, m.success = '', ''
        return m
    end
    m.state, m.fence, m.version, m.due, m.because, m.attempt, m.before, m.takeovers, m.counted, m.ended, m.blocked, m.turn, m.how, at =
        struct.unpack(MUT, raw)
    if m.how ~= 0 then
        m.by, m.by_fence, at = struct.unpack('>c16d', raw, at)
    end
    if m.how == KEPT then
        m.given, at = struct.unpack('>d', raw, at)
    end
    m.failure, m.success = struct.unpack('>I2c0I2c0', raw, at)
    if m.due == SAME then
        m.due = b.due
    end
    return m
end

local function write_mut(m, b)
    local due = m.due
    if due == b.due then
        due = SAME
    end
    local by = ''
    if m.how ~= 0 then
        by = struct.pack('>c16d', m.by, m.by_fence)
    end
    if m.how == KEPT then
        by = by .. struct.pack('>d', m.given)
    end
    return struct.pack(MUT, m.state, m.fence, m.version, due, m.because, m.attempt, m.before, m.takeovers, m.counted, m.ended,
        m.blocked, m.turn, m.how) .. by .. struct.pack('>I2c0I2c0', #m.failure, m.failure, #m.success, m.success)
end

local function read_lease(raw)
    local l, at = {}, nil
    l.holder, l.fence, l.version, l.leased, l.overdue, l.marks, l.flags, at = struct.unpack(LEASE, raw)
    l.lane = string.sub(raw, at)
    return l
end

local function write_lease(l, lane)
    return struct.pack(LEASE, l.holder, l.fence, l.version, l.leased, l.overdue, l.marks, l.flags) .. lane
end

-- Marks of a lease: what a person wants of the job, and whether its start was recorded.
local PAUSE, CANCEL, STARTED = 1, 2, 4

local function wanted_of(l)
    return has(l.marks, CANCEL) ~= 0 and 'C' or has(l.marks, PAUSE) ~= 0 and 'p' or nil
end

local function state_of(j)
    return j.l and 'l' or j.m.state
end

-- Remembers where the indexes have a job.
local function snapshot(j)
    local state = state_of(j)
    j.was = {
        state = state,
        lane = j.b.lane,
        due = j.m.due,
        waits = state == 's' and j.m.blocked == 0,
        deadline = LIVE[state] and has(j.b.flags, DEADLINE) ~= 0 and j.b.deadline,
        fails = (LIVE[state] or state == 'd') and j.m.failure ~= '',
        holder = j.l and j.l.holder,
        overdue = j.l and j.l.overdue,
        wanted = j.l and wanted_of(j.l),
    }
end

-- Every job is read once: two changes of one script see each other.
local known = {}

-- Makes a job of its values.
local function make(id, body, mut, lease)
    local j = { id = id, raw = body, b = read_body(body), raw_mut = mut, raw_lease = lease }
    j.m = read_mut(mut, j.b)
    if lease then
        j.l = read_lease(lease)
    end
    snapshot(j)
    known[id] = j
    return j
end

-- Takes a job whose values cannot be read out of the way of the others. It stays in the store, for a person to repair.
local function set_apart(id, lease)
    redis.call('HSET', P .. 'unreadable', id, 'its values')
    redis.call('ZREM', P .. 'deadlines', id)
    redis.call('ZREM', P .. 'expires', id)
    if lease then
        redis.call('HDEL', P .. 'lease', id)
        redis.call('ZREM', P .. 'held:' .. string.sub(lease, 1, 16), id)
    end
end

-- Reads jobs. Returns them by id; one that cannot be read is left out.
local function load(ids)
    local missing = {}
    for _, id in ipairs(ids) do
        if not known[id] then
            missing[#missing + 1] = id
        end
    end
    local bodies, muts, leases = fields('body', missing), fields('mut', missing), fields('lease', missing)
    for at, id in ipairs(missing) do
        if bodies[at] and not known[id] and not pcall(make, id, bodies[at], muts[at], leases[at]) then
            set_apart(id, leases[at])
        end
    end
    return known
end

local function member(j)
    return j.b.seq .. j.id
end

-- The two parts of the lane index.
local function leave_lane(j)
    redis.call('ZREM', P .. 'l:' .. j.was.lane, j.b.seq .. j.id)
    close_if_empty(j.was.lane)
end

local function enter_lane(j)
    touch(j.b.lane, j.m.due)
    redis.call('ZADD', P .. 'l:' .. j.b.lane, j.m.due, member(j))
end

-- Sets or clears one index of a job.
local function index(name, j, was, is, score)
    if is and (not was or was ~= is) then
        redis.call('ZADD', P .. name, score, j.id)
    elseif was and not is then
        redis.call('ZREM', P .. name, j.id)
    end
end

local TABLES = { s = 'live', l = 'live', p = 'live', d = 'dead', S = 'done', F = 'done', C = 'done' }

-- Moves a job between the three tables, and counts it.
local function move_table(j, state)
    local was, is = TABLES[j.was.state], TABLES[state]
    if was ~= is then
        if was then
            redis.call('ZREM', P .. was, j.id)
        end
        if is then
            redis.call('ZADD', P .. is, 0, j.id)
        end
    end
    local from, to = j.was.state, state
    if from ~= to or j.was.lane ~= j.b.lane then
        if from and was ~= 'done' then
            shift(j.was.lane, from, nil, 1)
        end
        if to and is ~= 'done' then
            shift(j.b.lane, nil, to, 1)
        end
    end
end

local function write_lease_of(j)
    local was, l = j.was, j.l
    if was.holder and (not l or was.holder ~= l.holder) then
        redis.call('HDEL', P .. 'lease', j.id)
        redis.call('ZREM', P .. 'held:' .. was.holder, j.id)
    end
    if was.wanted and not (l and wanted_of(l)) then
        redis.call('SREM', P .. 'wanted:' .. was.holder, j.id)
    end
    if l then
        l.flags = bit.bor(has(j.b.flags, 127), CHANGED)
        redis.call('HSET', P .. 'lease', j.id, write_lease(l, j.b.lane))
        redis.call('ZADD', P .. 'held:' .. l.holder, l.overdue, j.id)
        redis.call('SADD', P .. 'holding', l.holder)
        if wanted_of(l) then
            redis.call('SADD', P .. 'wanted:' .. l.holder, j.id)
        end
    end
end

-- Deletes what only a kept job has.
local function forget(j)
    redis.call('HDEL', P .. 'body', j.id)
    redis.call('HDEL', P .. 'mut', j.id)
    redis.call('HDEL', P .. 'unreadable', j.id)
    redis.call('UNLINK', P .. 'at:' .. j.id)
    if has(j.b.flags, BIG) ~= 0 then
        redis.call('HDEL', P .. 'big', j.id)
    end
    if j.b.parent then
        redis.call('ZREM', P .. 'ch:' .. j.b.parent, j.id)
    end
    known[j.id] = nil
end

-- Keeps the dead letters of a line apart, with their places: to find the next job of a line costs the same beside any number of them.
local function file_in_line(j, is_dead)
    local kind, tenant = names(j.b.lane)
    local line = kind .. '\0' .. tenant .. '\0' .. j.b.group
    local from, to = P .. 'g:' .. line, P .. 'gd:' .. line
    if not is_dead then
        from, to = to, from
    end
    local place = redis.call('ZSCORE', from, j.id)
    if place then
        redis.call('ZADD', to, place, j.id)
        redis.call('ZREM', from, j.id)
    end
end

-- Writes a changed job and its indexes. A job that is `gone` is deleted.
local function commit(j)
    local was = j.was
    local state = not j.gone and state_of(j) or nil
    local waits = state == 's' and j.m.blocked == 0
    local moved = was.lane ~= j.b.lane or was.due ~= j.m.due
    if was.waits and (not waits or moved) then
        leave_lane(j)
    end
    if waits and (not was.waits or moved) then
        enter_lane(j)
    end
    write_lease_of(j)
    move_table(j, state)
    local live = LIVE[state]
    local deadline = live and has(j.b.flags, DEADLINE) ~= 0 and j.b.deadline
    index('deadlines', j, was.deadline, deadline, deadline)
    index('failing', j, was.fails, (live or state == 'd') and j.m.failure ~= '', 0)
    index('unannounced', j, was.state == 'd', state == 'd', j.m.ended)
    index('expires', j, TABLES[was.state] == 'done', state and TABLES[state] == 'done', j.expires)
    if j.gone then
        return forget(j)
    end
    if j.b.group and (was.state == 'd') ~= (state == 'd') then
        file_in_line(j, state == 'd')
    end
    if j.rewritten then
        redis.call('HSET', P .. 'body', j.id, j.raw)
        j.rewritten = nil
    end
    redis.call('HSET', P .. 'mut', j.id, write_mut(j.m, j.b))
    snapshot(j)
end

-- Replaces the payload of a job.
local function set_payload(j, payload)
    local flags = has(j.b.flags, 255 - BIG)
    local inline = payload
    if #payload > INLINE_MAX then
        flags, inline = flags + BIG, ''
        redis.call('HSET', P .. 'big', j.id, payload)
    elseif flags ~= j.b.flags then
        redis.call('HDEL', P .. 'big', j.id)
    end
    j.raw = string.sub(j.raw, 1, 1) .. string.char(flags) .. string.sub(j.raw, 3, j.b.head) .. inline
    j.b.flags, j.rewritten = flags, true
end
