-- start: records that jobs start now, if the living holder still has them.
-- Arguments: offset, holder, leases {job, fence}.
-- {include base spare holder lane job}
local holder, answers = A[2], {}
local is_alive = alive(holder)
for at, lease in ipairs(A[3]) do
    local raw = is_alive and redis.call('HGET', P .. 'lease', lease[1])
    local l = raw and read_lease(raw)
    local has_it = l and l.holder == holder and l.fence == lease[2]
    if has_it then
        l.marks = bit.bor(l.marks, STARTED)
        redis.call('HSET', P .. 'lease', lease[1], write_lease(l, l.lane))
    end
    answers[at] = has_it and 1 or 0
end
return answers
