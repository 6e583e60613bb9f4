-- insert: stores new jobs; each is created, a duplicate, a replacement or refused.
-- Arguments: offset, origin, again, all_or_nothing, direct or false {holder, timeout, grace}, jobs.
-- {include base holder lane job audit group store}
local origin, again, all_or_nothing, direct, jobs = A[2], A[3] == 1, A[4] == 1, A[5], A[6]
local answers, refused, wrong, batch, is_reserved = plan(jobs, again, '')
if is_reserved then
    return redis.error_reply(RESERVED)
end
if wrong then
    return { 'EXISTS', wrong }
end
if refused and all_or_nothing then
    for at, answer in ipairs(answers) do
        local what = answer[1]
        if what == 'C' or what == 'W' or what == 'P' and not answer[3] then
            answers[at] = { 'O' }
        end
    end
    return { answers, false }
end
apply(jobs, answers, batch, direct and alive(direct[1]) and direct)
write_counts()
write_ledger(submitted, 0)
return { answers, report(origin) }
