-- fold_history: replaces the rows of a time range by one row or none. Does nothing if the number of rows is another one than expected.
-- Arguments: offset, from, until, number of rows or false, {start, name of the row, data} or false.
-- {include base spare}
local first, last = digits(A[2]), '(' .. digits(A[3])
if A[4] and redis.call('ZCOUNT', P .. 'history', first, last) ~= A[4] then
    return 0
end
local names = redis.call('ZRANGEBYSCORE', P .. 'history', first, last)
many('ZREM', 'history', names)
many('HDEL', 'history_data', names)
if A[5] then
    redis.call('ZADD', P .. 'history', digits(A[5][1]), A[5][2])
    redis.call('HSET', P .. 'history_data', A[5][2], A[5][3])
end
return 1
