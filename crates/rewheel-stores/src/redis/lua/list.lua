-- list: returns the next jobs of one table, the newest first, without payloads.
-- Arguments: offset, table, before or false, limit.
-- {include base}
local ids = redis.call('ZREVRANGEBYLEX', P .. A[2], A[3] and '(' .. A[3] or '+', '-', 'LIMIT', 0, A[4])
local bodies = fields('body', ids)
for at, body in ipairs(bodies) do
    if body then
        bodies[at] = string.sub(body, 1, (struct.unpack('>I2', body, 3)))
    end
end
return { ids, bodies, fields('mut', ids), fields('lease', ids) }
