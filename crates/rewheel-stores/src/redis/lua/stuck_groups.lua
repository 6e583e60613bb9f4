-- stuck_groups: finds lines that have no head, in a part of all lines.
-- Arguments: offset, after, limit.
-- A member that cannot be read is set aside.
-- {include base spare holder lane job audit group}
local lines = redis.call('ZRANGEBYLEX', P .. 'lines', A[2] == '' and '-' or '(' .. A[2], '+', 'LIMIT', 0, A[3])
local stuck = {}
for _, line in ipairs(lines) do
    if next_of(line) then
        stuck[#stuck + 1] = line
    end
end
return { #lines, stuck, lines[#lines] or '' }
