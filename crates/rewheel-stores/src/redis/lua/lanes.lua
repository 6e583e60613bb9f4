-- lanes: returns lanes of these kinds that have scheduled jobs, in order, with the due time of their first job; stops at a limit.
-- Arguments: offset, from (in the first kind; the first byte says whether it is included) or false, limit, kinds in order.
-- Also returns how many of the kinds were read to their end.
-- {include base}
local from, room, lanes, heads, done = A[2], A[3], {}, {}, 0
for _, kind in ipairs(A[4]) do
    local found = redis.call('ZRANGEBYLEX', P .. 'lanes', from or '[' .. kind .. '\0', '(' .. kind .. '\1', 'LIMIT', 0, room)
    for _, lane in ipairs(found) do
        lanes[#lanes + 1] = lane
        heads[#lanes] = redis.call('ZRANGE', P .. 'l:' .. lane, 0, 0, 'WITHSCORES')[2] or false
    end
    room = room - #found
    if room == 0 then
        -- This kind may have more.
        break
    end
    from, done = false, done + 1
end
return { digits(now), lanes, heads, done }
