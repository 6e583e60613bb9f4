-- lanes: returns lanes that have scheduled jobs, in order, with the due time of their first job.
-- Arguments: offset, from (the first byte says whether it is included), till, limit.
-- {include base}
local lanes, heads = redis.call('ZRANGEBYLEX', P .. 'lanes', A[2], A[3], 'LIMIT', 0, A[4]), {}
for at, lane in ipairs(lanes) do
    heads[at] = redis.call('ZRANGE', P .. 'l:' .. lane, 0, 0, 'WITHSCORES')[2] or false
end
return { digits(now), lanes, heads }
