-- give_back: frees jobs that were not started; their due time and attempts stay.
-- Arguments: offset, origin, holder, keep_job, keep_key, leases {job, fence}.
-- {include base spare holder lane job audit group ending settle}
local origin, holder, keep_job, keep_key = A[2], A[3], A[4], A[5]
local answers, pruned = {}, 0
for at, lease in ipairs(A[6]) do
    local j, answer = guard(lease[1], holder, lease[2], GIVEN_BACK)
    if j then
        local l = j.l
        local to = wanted_of(l) or 's'
        settled_by(j, holder, lease[2], GIVEN_BACK)
        note_fate(j, holder, { cause = 'g', from = 'l', to = to, holder = l.holder, fence = l.fence, wanted = wanted_of(l),
            takeovers = j.m.takeovers, counted = j.m.counted })
        pruned = pruned + let_go(j, to, keep_job, keep_key)
        touched[j.b.lane], wakes = true, true
        answer = { 'A', to }
    end
    answers[at] = answer
end
write_counts()
write_ledger(0, pruned)
return { answers, report(origin) }
