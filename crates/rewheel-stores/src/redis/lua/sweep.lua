-- sweep: frees jobs whose holder is dead or unknown, and overdue jobs.
-- Arguments: offset, origin, by, limit, keep_job, keep_key, watched_until, watched_since, where to go on (a holder, and how many of its
-- leases were passed over), how many leases to look at. Also returns where it stopped, or false.
-- {include base spare holder lane job audit group ending}
local origin, by, limit, keep_job, keep_key, till, since = A[2], A[3], A[4], A[5], A[6], A[7], A[8]
local first, passed, looks = A[9], A[10], A[11]
if not alive(by) then
    return redis.error_reply('DEAD the holder is dead or unknown')
end

-- The leases to take, before anything is written.
local taken, stopped = {}, false

-- Chooses leases of a living holder that are overdue. A job is taken only if the clock was watched for as long as its lease lasts. The
-- others must not hide those behind them.
local function choose_overdue(holder, from)
    local name, room = P .. 'held:' .. holder, limit - #taken
    local ids = redis.call('ZRANGEBYSCORE', name, '-inf', math.min(now, till), 'LIMIT', from, looks)
    local leases = fields('lease', ids)
    looks = looks - #ids
    for at, id in ipairs(ids) do
        local l = leases[at] and read_lease(leases[at])
        if not l or l.overdue - l.leased > since then
            from = from + 1
        elseif room == 0 then
            stopped = { holder, from }
            return
        else
            taken[#taken + 1] = id
            room = room - 1
        end
    end
    if looks == 0 then
        stopped = { holder, from }
    end
end

local function choose_dead(holder)
    local room = limit - #taken
    local ids = room > 0 and redis.call('ZRANGE', P .. 'held:' .. holder, 0, room - 1) or {}
    for _, id in ipairs(ids) do
        taken[#taken + 1] = id
    end
    if #ids >= room then
        stopped = { holder, 0 }
    end
end

local holding = redis.call('SMEMBERS', P .. 'holding')
table.sort(holding)
for _, holder in ipairs(holding) do
    if holder >= first then
        if alive(holder) then
            choose_overdue(holder, holder == first and passed or 0)
        else
            choose_dead(holder)
        end
        if redis.call('EXISTS', P .. 'held:' .. holder) == 0 then
            redis.call('SREM', P .. 'holding', holder)
        end
        if stopped then
            break
        end
    end
end

local events, pruned = {}, 0
load(taken)
local function take_over(j)
    local id, l, m = j.id, j.l, j.m
    local kind = names(j.b.lane)
    local row = redis.call('HGET', P .. 'kinds', kind)
    local takeovers_max = row and struct.unpack('>I4', row, 2) or FOREVER
    local counts = has(l.marks, STARTED) ~= 0
    local fence, wanted, holder = l.fence, wanted_of(l), l.holder
    m.takeovers = m.takeovers + 1
    m.counted = m.counted + (counts and 1 or 0)
    -- The previous holder may come back and settle under the old fence.
    l.fence = fence + 1
    local to, failure = wanted or 's', nil
    if not wanted and counts and m.counted >= takeovers_max then
        to, failure = 'd', 'T' .. struct.pack('>I4', m.counted)
        m.failure = failure
    end
    note_fate(j, by, { cause = 't', from = 'l', to = to, holder = holder, fence = fence, wanted = wanted,
        takeovers = m.takeovers, counted = m.counted, failure = failure })
    pruned = pruned + let_go(j, to, keep_job, keep_key)
    touched[j.b.lane], wakes = true, true
    events[#events + 1] = { id, kind, to, holder }
end

for _, id in ipairs(taken) do
    if known[id] and known[id].l then
        take_over(known[id])
    end
end
write_counts()
write_ledger(0, pruned)
return { digits(now), events, report(origin), stopped and stopped[1], stopped and stopped[2] or 0 }
