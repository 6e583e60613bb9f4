-- tally: returns the counters of all kinds and the time; with the number of jobs that they count.
-- Arguments: offset.
-- {include base}
local kinds = {}
local all = redis.call('HGETALL', P .. 'counts')
for at = 1, #all, 2 do
    if string.sub(all[at], 1, 1) == 'k' then
        kinds[#kinds + 1] = all[at]
        kinds[#kinds + 1] = all[at + 1]
    end
end
local jobs = redis.call('ZCARD', P .. 'live') + redis.call('ZCARD', P .. 'dead')
return { digits(now), jobs, redis.call('HKEYS', P .. 'kinds'), kinds }
