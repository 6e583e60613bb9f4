-- keyed: returns the jobs that have a key now, in any of these scopes.
-- Arguments: offset, scopes, key.
-- {include base}
local names, ids = {}, {}
for at, scope in ipairs(A[2]) do
    names[at] = scope .. '\0' .. A[3]
end
for _, row in ipairs(fields('keys', names)) do
    if row and (#row == 48 or select(2, struct.unpack('>c1d', row, 49)) > now) then
        ids[#ids + 1] = string.sub(row, 1, 16)
    end
end
return ids
