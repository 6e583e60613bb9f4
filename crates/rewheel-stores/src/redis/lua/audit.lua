-- audit: returns entries of the audit log, the latest first.
-- Arguments: offset, job or false, before or false, limit.
-- {include base}
local job, before, limit, found = A[2], A[3], A[4], {}
if limit <= 0 then
    return found
end
if not job then
    local from = before and (before <= 0 and '0-0' or '(' .. digits(before) .. '-0') or '+'
    return redis.call('XREVRANGE', P .. 'audit', from, '-', 'COUNT', limit)
end
for at = redis.call('LLEN', P .. 'aj:' .. job), 1, -1 do
    local number = redis.call('LINDEX', P .. 'aj:' .. job, at - 1)
    if not before or tonumber(number) < before then
        local entry = redis.call('XRANGE', P .. 'audit', number .. '-0', number .. '-0')[1]
        if entry then
            found[#found + 1] = entry
        end
        if #found >= limit then
            break
        end
    end
end
return found
