-- change: writes what people changed. Each job must still be as the caller has read it; otherwise the caller decides again.
-- Arguments: offset, origin, keep_job, keep_key, changes
-- {job, mut or false, lease or false, body or false, payload or false, to or false, marks, due, because, before, note}.
-- {include base spare holder lane job audit group ending}
local origin, keep_job, keep_key, answers, pruned = A[2], A[3], A[4], {}, 0
for at, c in ipairs(A[5]) do
    local j = load({ c[1] })[c[1]]
    if not j then
        answers[at] = 'gone'
    elseif (j.raw_mut or false) ~= c[2] or (j.raw_lease or false) ~= c[3] then
        answers[at] = 'again'
    else
        local body, payload, to, m = c[4], c[5], c[6], j.m
        if body then
            local was_big = has(j.b.flags, BIG) ~= 0
            j.raw, j.b, j.rewritten = body, read_body(body), true
            if payload then
                redis.call('HSET', P .. 'big', j.id, payload)
            elseif was_big then
                redis.call('HDEL', P .. 'big', j.id)
            end
        end
        m.due, m.because, m.before = c[8], c[9], c[10]
        note_made(c[11])
        touched[j.b.lane], wakes = true, true
        if j.l then
            j.l.marks = bit.bor(has(j.l.marks, STARTED), c[7])
            j.l.version = j.l.version + 1
            commit(j)
        elseif to then
            pruned = pruned + let_go(j, to, keep_job, keep_key)
        else
            m.version = m.version + 1
            commit(j)
        end
        answers[at] = 'done'
    end
end
write_counts()
write_ledger(0, pruned)
return { answers, report(origin) }
