-- settle: writes the results of attempts, each only if the holder still has the job under its fence.
-- Arguments: offset, origin, holder, settlements.
-- {include base spare holder lane job audit group ending store settle}
local origin, holder, settlements = A[2], A[3], A[4]

-- Positions in a settlement. A plain one, a success and nothing else, has only those of the first line.
local JOB, FENCE, PLAIN, KEEP_JOB, KEEP_KEY, SUCCESS = 1, 2, 3, 4, 5, 6
local TO, TO_IF_PAUSED, TO_IF_CANCELLED, USES, AFTER, BECAUSE, HOLD = 7, 8, 9, 10, 11, 12, 13
local FAILURE, RECORD, RESULT, NEW_PAYLOAD, FOLLOW_UPS = 14, 15, 16, 17, 18

-- What one script does at most, in plain successes. The rest has no answer, and the caller sends it again.
local WORK_MAX, SLOW_WORK = 250, 8

local is_alive = alive(holder)
local pruned, work = 0, 0

-- Successes of jobs that were never changed and have nothing special are written together.
local fast = { drop = {}, mut = {}, done = {}, expires = {}, all = {} }

local function write_fast()
    if #fast.all == 0 then
        return
    end
    many('HDEL', 'lease', fast.all)
    many('ZREM', 'held:' .. holder, fast.all)
    many('ZREM', 'live', fast.all)
    many('HDEL', 'body', fast.drop)
    many('HSET', 'mut', fast.mut)
    many('ZADD', 'done', fast.done)
    many('ZADD', 'expires', fast.expires)
    fast = { drop = {}, mut = {}, done = {}, expires = {}, all = {} }
end

local function add_to(list, one, other)
    list[#list + 1] = one
    list[#list + 1] = other
end

local function settle_fast(s, raw)
    local id, lane = s[JOB], string.sub(raw, 51)
    fast.all[#fast.all + 1] = id
    shift(lane, 'l', nil, 1)
    if s[KEEP_JOB] == 0 then
        fast.drop[#fast.drop + 1] = id
        pruned = pruned + 1
        return
    end
    local version = struct.unpack('>d', raw, 25)
    local success = struct.pack('>I4d', 1, s[FENCE]) .. holder .. s[SUCCESS]
    add_to(fast.mut, id, struct.pack(MUT, 'S', s[FENCE], version + 1, SAME, 0, 1, 0, 0, 0, now, 0, 0, SETTLED)
        .. struct.pack('>c16dI2I2c0', holder, s[FENCE], 0, #success, success))
    add_to(fast.done, 0, id)
    add_to(fast.expires, plus(now, s[KEEP_JOB]), id)
end

-- Keeps the first and the latest records of a long history; the oldest of the latest counts those that were dropped.
local function write_record(id, record)
    local name = P .. 'at:' .. id
    if redis.call('RPUSH', name, record) > 100 then
        local gone, oldest = unpack(redis.call('LRANGE', name, 10, 11))
        local dropped = struct.unpack('>I4', gone) + struct.unpack('>I4', oldest) + 1
        redis.call('LSET', name, 11, struct.pack('>I4', dropped) .. string.sub(oldest, 5))
        redis.call('LSET', name, 10, '')
        redis.call('LREM', name, 1, '')
    end
end

-- Writes to a job what its attempt has changed, except for its state.
local function record(j, s)
    local m = j.m
    local attempt = m.attempt + 1
    if s[USES] == 1 then
        m.attempt = attempt
    end
    if s[AFTER] then
        m.due, m.because = plus(now, s[AFTER]), s[BECAUSE]
    end
    if s[FAILURE] ~= '' then
        m.failure = s[FAILURE]
    end
    m.success = s[SUCCESS] and struct.pack('>I4d', attempt, s[FENCE]) .. holder .. s[SUCCESS] or ''
    if s[RECORD] then
        write_record(j.id, struct.pack('>I4I4dd', 0, attempt, s[FENCE], now) .. holder .. s[RECORD])
    end
    if s[NEW_PAYLOAD] then
        set_payload(j, s[NEW_PAYLOAD])
    end
end

local function settle_slow(s)
    if s[PLAIN] == 1 then
        s[TO], s[TO_IF_PAUSED], s[TO_IF_CANCELLED], s[USES], s[FAILURE] = 'S', 'S', 'S', 1, ''
    end
    local j, answer = guard(s[JOB], holder, s[FENCE], SETTLED)
    if not j then
        return answer
    end
    local l = j.l
    local wanted = wanted_of(l)
    local to = wanted == 'C' and s[TO_IF_CANCELLED] or wanted == 'p' and s[TO_IF_PAUSED] or s[TO]
    if to == 'l' and not is_alive then
        to = 's'
    end
    record(j, s)
    settled_by(j, holder, s[FENCE], to == 'l' and KEPT or SETTLED)
    if to == 'l' then
        l.fence, l.version, l.leased = next_fence(l.fence), l.version + 1, now
        -- A repetition is recognised by this fence. To compute it again could give another one: an epoch may have begun.
        j.m.given = l.fence
        l.overdue, l.marks = plus(j.m.due, s[HOLD]), 0
        commit(j)
        return kept(j)
    end
    note_fate(j, holder, { cause = 's', from = 'l', to = to, holder = l.holder, fence = l.fence, wanted = wanted,
        takeovers = j.m.takeovers, counted = j.m.counted, failure = s[FAILURE] })
    pruned = pruned + let_go(j, to, s[KEEP_JOB], s[KEEP_KEY])
    if to == 's' then
        touched[j.b.lane], wakes = true, true
    end
    if s[RESULT] and to == 'S' and not j.gone then
        redis.call('HSET', P .. 'results', j.id, s[RESULT])
        redis.call('ZADD', P .. 'results_expire', plus(now, s[KEEP_JOB]), j.id)
    end
    return { 'A', to }
end

-- Stores a refused job as a dead letter, and its kind if that does not exist.
local function store_letter(new, failure, kind_raw, kind_note)
    if redis.call('HEXISTS', P .. 'body', new[ID]) == 1 then
        return
    end
    local kind = names(new[LANE])
    if not kind_row(kind) then
        -- The version of a kind starts with the time of its creation.
        local made = string.sub(kind_raw, 1, 5) .. struct.pack('>d', now) .. string.sub(kind_raw, 14)
        redis.call('HSET', P .. 'kinds', kind, made)
        redis.call('ZADD', P .. 'kinds_changed', next_number('kinds'), kind)
        kind_rows[kind] = made
        note_made(kind_note)
    end
    store(new, next_number('seq'), nil, { rows = {} })
    join_lines()
    local j = load({ new[ID] })[new[ID]]
    note_fate(j, holder, { cause = 's', from = 's', to = 'd', fence = 0, takeovers = 0, counted = 0, failure = failure })
    j.m.failure = failure
    let_go(j, 'd', FOREVER, FOREVER)
end

-- Stores the jobs that applied settlements submit: {jobs, letters}. Each job has its letter, in case it is refused.
local function submit(jobs, letters)
    local answers, _, _, batch = plan(jobs, true)
    apply(jobs, answers, batch, nil)
    for at, answer in ipairs(answers) do
        if answer[1] == 'X' then
            local letter = jobs[at][20]
            -- Not even a dead letter of a group may exist while such a holder lives.
            letter = answer[2] == 'H' and letter[5] or letter
            local failure = 'U' .. answer[2] .. struct.pack('>I2c0', #answer[3], answer[3]) .. letter[2]
            store_letter(letter[1], failure, letter[3], letter[4])
        end
    end
    for _, letter in ipairs(letters) do
        store_letter(letter[1], letter[2], letter[3], letter[4])
    end
end

local ids, seen, answers = {}, {}, {}
for at, s in ipairs(settlements) do
    ids[at] = s[JOB]
end
local leases = fields('lease', ids)
for at, s in ipairs(settlements) do
    local raw = leases[at]
    local id = s[JOB]
    if work >= WORK_MAX then
        break
    end
    work = work + 1
    if s[PLAIN] == 1 and raw and not seen[id] and string.byte(raw, 50) == 0 and has(string.byte(raw, 49), 3) == 0
        and string.sub(raw, 1, 24) == holder .. struct.pack('>d', s[FENCE]) then
        settle_fast(s, raw)
        answers[at] = { 'A', 'S' }
    else
        if seen[id] then
            write_fast()
        end
        answers[at] = settle_slow(s)
        work = work + SLOW_WORK + (s[FOLLOW_UPS] and SLOW_WORK * (#s[FOLLOW_UPS][1] + #s[FOLLOW_UPS][2]) or 0)
        if s[FOLLOW_UPS] and (answers[at][1] == 'A' or answers[at][1] == 'K') then
            submit(s[FOLLOW_UPS][1], s[FOLLOW_UPS][2])
        end
    end
    seen[id] = true
end
write_fast()
write_counts()
write_ledger(submitted, pruned)
return { answers, report(origin) }
