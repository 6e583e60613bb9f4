-- extend: gives a running attempt more time before it is overdue.
-- Arguments: offset, holder, job, fence, timeout, total_max, grace.
-- {include base spare holder lane job}
local raw = alive(A[2]) and redis.call('HGET', P .. 'lease', A[3])
local l = raw and read_lease(raw)
if not (l and l.holder == A[2] and l.fence == A[4]) then
    return false
end
local ends = math.min(plus(now, A[5]), plus(l.leased, A[6]))
l.overdue = math.max(plus(ends, A[7]), l.overdue)
redis.call('HSET', P .. 'lease', A[3], write_lease(l, l.lane))
redis.call('ZADD', P .. 'held:' .. l.holder, l.overdue, A[3])
return digits(l.overdue)
