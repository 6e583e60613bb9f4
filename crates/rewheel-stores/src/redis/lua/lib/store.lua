-- store: decides what to do with new jobs, and stores them. Nothing is written before every job of the batch was looked at.

-- Positions in a new job. What Rust does not know is missing from its body: the times, and the place in the lane.
local ID, FLAGS, HEAD_BYTES, TAIL, LANE, DUE_IS_TIME, DUE, LIMIT, DEADLINE_AT, FORMAT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local FIELD, HASH, REPLACES, UNTIL_CLAIMED, DEBOUNCE_MAX, PARENT_ID, PAYLOAD, OWN_TIMEOUT, TOO_LARGE = 11, 12, 13, 14, 15, 16, 17, 18, 19

local RESERVED = 'RESERVED a batch with one of these keys is being stored'

local kind_rows, oldest = {}, nil

local function kind_row(kind)
    local row = kind_rows[kind]
    if row == nil then
        row = redis.call('HGET', P .. 'kinds', kind)
        kind_rows[kind] = row
    end
    return row
end

-- Returns the name of a living holder whose release would damage jobs of this format.
local function too_old(format)
    if not format or format == 0 then
        return nil
    end
    if oldest == nil then
        oldest = false
        local all = redis.call('HVALS', P .. 'holders')
        for _, raw in ipairs(all) do
            local died, _, _, _, _, known, _, name = struct.unpack(HOLDER, raw)
            if died == 0 and (not oldest or known < oldest[1]) then
                oldest = { known, name }
            end
        end
    end
    return oldest and oldest[1] < format and oldest[2] or nil
end

local function due_of(new)
    return new[DUE_IS_TIME] == 1 and new[DUE] or plus(now, new[DUE])
end

local function deadline_of(new)
    if not new[LIMIT] or new[LIMIT] == 0 then
        return nil
    end
    return new[LIMIT] == 2 and new[DEADLINE_AT] or plus(now, new[DEADLINE_AT])
end

local function is_too_late(new, due)
    local deadline = deadline_of(new)
    return deadline ~= nil and (deadline <= now or deadline < due)
end

-- The start of the body of the job before: most jobs of a batch have the same.
local last = {}

-- Returns the body of a new job.
local function body_of(new, place, due, deadline)
    if last.flags ~= new[FLAGS] or last.head ~= new[HEAD_BYTES] or last.due ~= due or last.deadline ~= deadline then
        last = { flags = new[FLAGS], head = new[HEAD_BYTES], due = due, deadline = deadline }
        last.start = struct.pack('>BBI2', 1, new[FLAGS], new[HEAD_BYTES])
        last.times = struct.pack('>ddd', now, due, deadline or 0)
    end
    return last.start .. place .. last.times .. new[TAIL]
end

-- Returns the job that has a key, if it is still known.
local function holder_of_key(batch, field)
    local within = batch.keys[field]
    if within then
        return { job = within[1], hash = within[2], waits = true, within = batch.ids[within[1]] }
    end
    local row = batch.rows[field]
    if not row then
        return nil
    end
    local state
    if #row > 48 then
        local ended, expires = struct.unpack('>c1d', row, 49)
        if expires <= now then
            return nil
        end
        state = ended
    end
    local j = load({ string.sub(row, 1, 16) })[string.sub(row, 1, 16)]
    local waits = j and not j.l and (j.m.state == 's' or j.m.state == 'p') and j.m.fence == 0
    return { job = string.sub(row, 1, 16), hash = string.sub(row, 17, 48), waits = waits, state = state or j and state_of(j) or 'S', j = j }
end

local function answer_by_key(new, owner, batch)
    if owner.hash ~= new[HASH] then
        -- A batch that was decided is stored. The key's job waited then, and was claimed since: it gives up the key.
        return not batch.is_decided and { 'X', 'R', owner.job } or nil
    end
    if owner.within then
        return { 'W', owner.job }
    end
    return { 'U', owner.job, owner.state }
end

local function replace_by_key(new, owner, batch)
    local due = due_of(new)
    if owner.j and new[DEBOUNCE_MAX] then
        due = math.min(due, plus(owner.j.b.created, new[DEBOUNCE_MAX]))
    end
    if not batch.is_decided and is_too_late(new, due) then
        return { 'X', 'D', '' }
    end
    batch.keys[new[FIELD]] = { owner.job, new[HASH] }
    return { 'P', owner.job }
end

-- Returns what is wrong with the job itself, if anything.
local function refusal(new)
    if new[TOO_LARGE] then
        return { 'X', 'L', digits(new[TOO_LARGE]) }
    end
    if not kind_row((names(new[LANE]))) then
        return { 'X', 'K', '' }
    end
    local holder = too_old(new[FORMAT])
    return holder and { 'X', 'H', holder }
end

-- Returns the job that this one has replaced. Also a first call may find one: it came late, after its repetition.
local function replaced_before(new)
    local replaced = new[REPLACES] == 1 and redis.call('HGET', P .. 'replaced', new[ID])
    if replaced then
        local j = load({ replaced })[replaced]
        return { 'P', replaced, j and state_of(j) or 'S' }
    end
    return nil
end

-- What an earlier call with the same jobs has done, if this is a repetition.
local function done_before(new, batch, at)
    if batch.bodies[at] then
        return { 'U', new[ID], state_of(load({ new[ID] })[new[ID]]) }
    end
    if batch.ids[new[ID]] then
        return { 'W', new[ID] }
    end
    return nil
end

-- Decides about one job. Returns its answer, or an error for the whole batch.
local function plan_one(new, batch, at, again)
    local before = again and done_before(new, batch, at) or replaced_before(new)
    if before then
        return before
    end
    local wrong = not batch.is_decided and refusal(new)
    if wrong then
        return wrong
    end
    local row = new[FIELD] and batch.reserved[new[FIELD]]
    if row then
        local same = string.sub(row, 33) == new[HASH]
        return same and { 'U', string.sub(row, 17, 32), 's' } or { 'X', 'R', string.sub(row, 17, 32) }
    end
    local owner = new[FIELD] and holder_of_key(batch, new[FIELD])
    if owner then
        if owner.waits and new[REPLACES] == 1 then
            return replace_by_key(new, owner, batch)
        elseif owner.waits or new[UNTIL_CLAIMED] ~= 1 then
            local answer = answer_by_key(new, owner, batch)
            if answer then
                return answer
            end
        end
    end
    if new[LIMIT] and not batch.is_decided and is_too_late(new, due_of(new)) then
        return { 'X', 'D', '' }
    end
    if batch.bodies[at] or batch.ids[new[ID]] then
        return nil, new[ID]
    end
    if new[FIELD] then
        batch.keys[new[FIELD]] = { new[ID], new[HASH] }
    end
    batch.ids[new[ID]] = true
    return { 'C' }
end

-- Looks at the keys that staged batches have reserved. Those of the batch `own` count as part of it. Returns whether another has one.
-- Without `own` the jobs cannot wait for the other batch: a key that it has reserved is taken.
local function reserved(batch, keyed, own)
    if redis.call('EXISTS', P .. 'staged_keys') == 0 then
        return false
    end
    for at, row in ipairs(fields('staged_keys', keyed)) do
        if row and not own then
            batch.reserved[keyed[at]] = row
        elseif row and string.sub(row, 1, 16) ~= own then
            return true
        elseif row then
            local job = string.sub(row, 17, 32)
            batch.keys[keyed[at]] = { job, string.sub(row, 33) }
            batch.ids[job] = 's'
        end
    end
    return false
end

-- Decides about all jobs. Returns their answers and whether one is refused, or the id that makes the batch impossible.
-- `own`: the staged batch that the jobs belong to, or empty. `is_decided`: whether they must be stored.
local function plan(jobs, again, own, is_decided)
    local ids, keyed, batch = {}, {}, { ids = {}, keys = {}, rows = {}, reserved = {}, is_decided = is_decided }
    for at, new in ipairs(jobs) do
        ids[at] = new[ID]
        if new[FIELD] then
            keyed[#keyed + 1] = new[FIELD]
        end
    end
    if not is_decided and reserved(batch, keyed, own) then
        return nil, false, nil, nil, true
    end
    batch.bodies = fields('body', ids)
    local rows = fields('keys', keyed)
    for at, field in ipairs(keyed) do
        batch.rows[field] = rows[at]
    end
    local answers, refused = {}, false
    for at, new in ipairs(jobs) do
        local answer, wrong = plan_one(new, batch, at, again)
        if wrong then
            return nil, false, wrong
        end
        answers[at] = answer
        refused = refused or answer[1] == 'X'
    end
    return answers, refused, nil, batch
end

-- What is written for all jobs of a batch at once.
local bulk = { body = {}, big = {}, live = {}, deadlines = {}, keys = {}, lease = {}, held = {}, lanes = {} }
local grouped, submitted = {}, 0

local function add(name, one, other)
    local list = bulk[name]
    list[#list + 1] = one
    list[#list + 1] = other
end

-- Writes what was collected.
local function write_bulk()
    many('HSET', 'body', bulk.body)
    many('HSET', 'big', bulk.big)
    many('ZADD', 'live', bulk.live)
    many('ZADD', 'deadlines', bulk.deadlines)
    many('HSET', 'keys', bulk.keys)
    many('HSET', 'lease', bulk.lease)
    if bulk.holder then
        many('ZADD', 'held:' .. bulk.holder, bulk.held)
        redis.call('SADD', P .. 'holding', bulk.holder)
    end
    for lane, places in pairs(bulk.lanes) do
        many('ZADD', 'l:' .. lane, places)
    end
    bulk = { body = {}, big = {}, live = {}, deadlines = {}, keys = {}, lease = {}, held = {}, lanes = {} }
end

-- Whether a new job may be leased at once, because no other job of its lane is due.
local function may_lease(new, due)
    local kind = kind_row((names(new[LANE])))
    local head = head_of(new[LANE])
    return bit.band(string.byte(kind), 3) == 0 and due <= now and (not head or head > now) and has(new[FLAGS], GROUP) == 0
end

local function take_key(new, batch)
    local row = batch.rows[new[FIELD]]
    add('keys', new[FIELD], new[ID] .. new[HASH])
    if row and #row > 48 then
        redis.call('ZREM', P .. 'keys_expire', new[FIELD])
    elseif not row then
        local kind, tenant = names(new[LANE])
        redis.call('HINCRBY', P .. 'scopes', kind .. '\0' .. tenant, 1)
    end
    batch.rows[new[FIELD]] = new[ID] .. new[HASH]
end

-- Remembers the newest format that a stored job has used: holders of older releases cannot join any more.
local function use_format(format)
    if format and format > 0 and format > tonumber(redis.call('HGET', P .. 'meta', 'format') or 0) then
        redis.call('HSET', P .. 'meta', 'format', digits(format))
    end
end

-- Stores one job. Its place in the lane is the number `seq`. Returns when it is due, and its fence if it was leased.
local function store(new, seq, direct, batch)
    local due, deadline = due_of(new), deadline_of(new)
    local id, lane, place = new[ID], new[LANE], struct.pack('>I6', seq)
    add('body', id, body_of(new, place, due, deadline))
    add('live', 0, id)
    if new[PAYLOAD] then
        add('big', id, new[PAYLOAD])
    end
    if deadline then
        add('deadlines', deadline, id)
    end
    if new[FIELD] then
        take_key(new, batch)
    end
    if new[PARENT_ID] then
        redis.call('ZADD', P .. 'ch:' .. new[PARENT_ID], 0, id)
    end
    submitted = submitted + 1
    use_format(new[FORMAT])
    if direct and may_lease(new, due) then
        local overdue = plus(plus(math.max(now, due), new[OWN_TIMEOUT] or direct[2]), direct[3])
        local fence = next_fence(0)
        add('lease', id, struct.pack(LEASE, direct[1], fence, 1, now, overdue, 0, new[FLAGS]) .. lane)
        add('held', overdue, id)
        bulk.holder, wakes = direct[1], true
        shift(lane, nil, 'l', 1)
        return due, fence
    end
    shift(lane, nil, 's', 1)
    if has(new[FLAGS], GROUP) ~= 0 then
        grouped[#grouped + 1] = id
        touched[lane], wakes = true, true
        return due, 0
    end
    touch(lane, due)
    local places = bulk.lanes[lane]
    if not places then
        places = {}
        bulk.lanes[lane] = places
    end
    places[#places + 1] = due
    places[#places + 1] = place .. id
    return due, 0
end

-- Gives the stored jobs of groups their places in line.
local function join_lines()
    write_bulk()
    for _, id in ipairs(grouped) do
        local j = load({ id })[id]
        join_line(j)
        release(line_of(j), false)
    end
    grouped = {}
end

-- Returns the body of a job in place of another: the id, the group, the place and the time of creation stay.
local function body_in_place(new, old, due)
    local raw = struct.pack('>BBI2c6ddd', 1, new[FLAGS], new[HEAD_BYTES], old.seq, old.created, due, deadline_of(new) or 0) .. new[TAIL]
    if not old.group then
        return raw
    end
    local at = read_body(raw).group_at
    local group = struct.pack('>Bc0', #old.group, old.group)
    local head = struct.pack('>BBI2', 1, new[FLAGS] + GROUP, new[HEAD_BYTES] + #group)
    return head .. string.sub(raw, 5, at - 1) .. group .. string.sub(raw, at)
end

-- Replaces what a job that waits will run.
local function replace(new, id)
    write_bulk()
    local j = load({ id })[id]
    local due, old = due_of(new), j.b
    if new[DEBOUNCE_MAX] then
        due = math.min(due, plus(old.created, new[DEBOUNCE_MAX]))
    end
    local kind = names(old.lane)
    -- The log shows at most 4 KiB of a payload.
    local was_big = has(old.flags, BIG) ~= 0
    local big = was_big and string.sub(redis.call('HGET', P .. 'big', id) or '', 1, 4096) or false
    local raw = body_in_place(new, old, due)
    note({ 'R', now, id, kind, j.raw, big, raw, new[PAYLOAD] and string.sub(new[PAYLOAD], 1, 4096) or false, new[ID],
        write_mut(j.m, old) }, id)
    redis.call('HSET', P .. 'replaced', new[ID], id)
    if old.parent then
        redis.call('ZREM', P .. 'ch:' .. old.parent, id)
    end
    if new[PARENT_ID] then
        redis.call('ZADD', P .. 'ch:' .. new[PARENT_ID], 0, id)
    end
    if new[PAYLOAD] then
        redis.call('HSET', P .. 'big', id, new[PAYLOAD])
    elseif was_big then
        redis.call('HDEL', P .. 'big', id)
    end
    redis.call('HSET', P .. 'keys', new[FIELD], id .. new[HASH])
    local lane, earlier, before = old.lane, due < j.m.due, touched[new[LANE]]
    j.raw, j.b, j.rewritten = raw, read_body(raw), true
    local m = j.m
    m.due, m.because, m.version = due, 0, m.version + 1
    m.attempt, m.before = j.b.before, j.b.before
    commit(j)
    wakes = true
    if lane == j.b.lane and not earlier then
        touched[lane] = before
    end
    return m.state
end

-- Does what was planned. `answers` gets what the caller is told.
local function apply(jobs, answers, batch, direct)
    local news = 0
    for _, answer in ipairs(answers) do
        news = news + (answer[1] == 'C' and 1 or 0)
    end
    local seq = news > 0 and redis.call('HINCRBY', P .. 'meta', 'seq', news) - news or 0
    for at, answer in ipairs(answers) do
        local new, what = jobs[at], answer[1]
        if what == 'C' then
            seq = seq + 1
            local due, fence = store(new, seq, direct, batch)
            answer[2], answer[3] = due, fence
            batch.ids[new[ID]] = fence > 0 and 'l' or 's'
        elseif what == 'P' and not answer[3] then
            answer[3] = replace(new, answer[2])
        elseif what == 'W' then
            answers[at] = { 'U', answer[2], batch.ids[answer[2]] }
        end
    end
    join_lines()
end
