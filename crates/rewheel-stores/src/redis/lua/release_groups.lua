-- release_groups: releases the first job of lines that have no head. Returns the last line that was checked.
-- Arguments: offset, origin, after, limit.
-- {include base spare holder lane job audit group}
local lines = redis.call('ZRANGEBYLEX', P .. 'lines', A[3] == '' and '-' or '(' .. A[3], '+', 'LIMIT', 0, A[4])
local released = 0
for _, line in ipairs(lines) do
    if release(line, true) then
        released = released + 1
    end
end
write_counts()
return { #lines, released, lines[#lines] or '', report(A[2]) }
