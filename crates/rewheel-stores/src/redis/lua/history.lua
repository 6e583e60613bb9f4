-- history: returns rows of a time range in order, and the time. The name of a row begins with its start, so that rows with equal
-- scores are in order, too.
-- Arguments: offset, since, older_than, start and name of the last row or false, limit.
-- {include base}
local from, before = now - A[2], A[3] > 0 and '(' .. digits(now - A[3]) or '+inf'
if A[4] then
    from = math.max(from, A[4])
end
local names, skipped = {}, 0
while #names < A[6] do
    local part = redis.call('ZRANGEBYSCORE', P .. 'history', digits(from), before, 'LIMIT', skipped, SLICE)
    for _, name in ipairs(part) do
        if #names < A[6] and (not A[5] or name > A[5]) then
            names[#names + 1] = name
        end
    end
    if #part < SLICE then
        break
    end
    skipped = skipped + SLICE
end
return { digits(now), names, fields('history_data', names) }
