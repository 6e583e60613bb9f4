-- tally: returns the time, the number of all jobs, and a part of all kinds with their counters of jobs by state.
-- Arguments: offset, after (the change after which the part begins), limit.
-- Also returns the change at which the part ends.
-- {include base}
-- By their changes: a kind that changes between two parts is in both, and none is left out.
local found = redis.call('ZRANGEBYSCORE', P .. 'kinds_changed', '(' .. digits(A[2]), '+inf', 'WITHSCORES', 'LIMIT', 0, A[3])
local kinds, counters, last = {}, {}, '0'
for at = 1, #found, 2 do
    kinds[#kinds + 1] = found[at]
    for _, state in ipairs({ 's', 'l', 'p', 'd' }) do
        counters[#counters + 1] = 'k' .. found[at] .. '\0' .. state
    end
    last = found[at + 1]
end
local jobs = redis.call('ZCARD', P .. 'live') + redis.call('ZCARD', P .. 'dead')
return { digits(now), jobs, kinds, fields('counts', counters), last }
