-- lane_heads: returns the due time of the first job of each of these lanes.
-- Arguments: offset, lanes.
-- {include base}
local heads = {}
for at, lane in ipairs(A[2]) do
    heads[at] = redis.call('ZRANGE', P .. 'l:' .. lane, 0, 0, 'WITHSCORES')[2] or false
end
return { digits(now), heads }
