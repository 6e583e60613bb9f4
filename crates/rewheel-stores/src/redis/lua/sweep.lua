-- sweep: frees jobs whose holder is dead or unknown, and overdue jobs.
-- Arguments: offset, origin, by, limit, keep_job, keep_key, watched_until, watched_since.
-- {include base spare holder lane job audit group ending}
local origin, by, limit, keep_job, keep_key, till, since = A[2], A[3], A[4], A[5], A[6], A[7], A[8]
if not alive(by) then
    return redis.error_reply('DEAD the holder is dead or unknown')
end

-- The leases to take, before anything is written: ids with their holders.
local taken = {}
for _, holder in ipairs(redis.call('SMEMBERS', P .. 'holding')) do
    local name, room = P .. 'held:' .. holder, limit - #taken
    if room <= 0 then
        break
    end
    local ids
    if alive(holder) then
        -- A job is taken from a living holder only if the clock was watched for as long as its lease lasts.
        local overdue = redis.call('ZRANGEBYSCORE', name, '-inf', math.min(now, till), 'LIMIT', 0, room)
        ids = {}
        local leases = fields('lease', overdue)
        for at, id in ipairs(overdue) do
            local l = leases[at] and read_lease(leases[at])
            if l and l.overdue - l.leased <= since then
                ids[#ids + 1] = id
            end
        end
    else
        ids = redis.call('ZRANGE', name, 0, room - 1)
    end
    if redis.call('EXISTS', name) == 0 then
        redis.call('SREM', P .. 'holding', holder)
    end
    for _, id in ipairs(ids) do
        taken[#taken + 1] = id
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
return { digits(now), events, report(origin) }
