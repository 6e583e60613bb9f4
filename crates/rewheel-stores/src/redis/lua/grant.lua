-- grant: writes retry budgets that still are as the caller has read them; without new values it only reads.
-- Arguments: offset, kinds, before, after or false.
-- {include base spare}
local rows = fields('budgets', A[2])
if not A[4] then
    return { digits(now), rows }
end
for at, row in ipairs(rows) do
    if row ~= A[3][at] then
        return 'again'
    end
end
local values = {}
for at, kind in ipairs(A[2]) do
    values[2 * at - 1], values[2 * at] = kind, A[4][at]
end
many('HSET', 'budgets', values)
return 'done'
