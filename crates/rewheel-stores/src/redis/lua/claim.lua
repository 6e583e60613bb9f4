-- claim: leases jobs that are due within the horizon to a living holder.
-- Arguments: offset, holder, limit, visits {lane, limit, timeout, ceiling, grace, horizon}.
-- {include base spare holder lane job claim}
local holder, left, visits = A[2], A[3], A[4]
if not alive(holder) then
    return redis.error_reply('DEAD the holder is dead or unknown')
end
for _, visit in ipairs(visits) do
    left = left - visit_lane(holder, visit, plus(now, visit[6]), math.min(visit[2], left))
    if left <= 0 then
        break
    end
end
write_counts()
return { digits(now), taken }
