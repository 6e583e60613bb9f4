-- deadlines: ends live jobs whose deadline has passed; leased ones only after the grace.
-- Arguments: offset, origin, grace, limit, from, looks. Looks at a part of the jobs whose deadline has passed, and returns how many of them
-- it has left, and whether there may be more.
-- {include base spare holder lane job audit group ending}
local origin, grace, limit, from, looks = A[2], A[3], A[4], A[5], A[6]
local late, left, more = {}, 0, false
local ids = redis.call('ZRANGEBYSCORE', P .. 'deadlines', '-inf', now, 'LIMIT', from, looks)
load(ids)
for _, id in ipairs(ids) do
    if #late >= limit then
        more = true
        break
    end
    local j = known[id]
    if j and (not j.l or plus(j.b.deadline, grace) <= now) then
        late[#late + 1] = j
    else
        left = left + 1
    end
end
more = more or #ids == looks
local events = {}
for _, j in ipairs(late) do
    local state, l = state_of(j), j.l
    local fence = l and l.fence or j.m.fence
    note_fate(j, nil, { cause = 'd', from = state, to = 'd', holder = l and l.holder, fence = fence, wanted = l and wanted_of(l),
        takeovers = j.m.takeovers, counted = j.m.counted, failure = 'D' })
    if l then
        l.fence = fence + 1
    end
    j.m.failure = 'D'
    let_go(j, 'd', FOREVER, FOREVER)
    events[#events + 1] = { j.id, (names(j.b.lane)), state, l and l.holder or false }
end
write_counts()
return { digits(now), events, report(origin), left, more and 1 or 0 }
