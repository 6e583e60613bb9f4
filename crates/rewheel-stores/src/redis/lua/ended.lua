-- ended: returns for each job whether it is not live.
-- Arguments: offset, jobs.
-- {include base}
local answers = {}
for first = 1, #A[2], SLICE do
    local scores = redis.call('ZMSCORE', P .. 'live', unpack(A[2], first, math.min(first + SLICE - 1, #A[2])))
    for at, score in ipairs(scores) do
        answers[first + at - 1] = score and 0 or 1
    end
end
return answers
