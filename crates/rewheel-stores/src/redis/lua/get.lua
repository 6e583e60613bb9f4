-- get: returns the values of jobs, with their payloads if asked, and the time.
-- Arguments: offset, jobs, with_payload.
-- {include base}
local bodies = fields('body', A[2])
local bigs = {}
for at, body in ipairs(bodies) do
    bigs[at] = false
    if body and A[3] == 1 then
        bigs[at] = bit.band(string.byte(body, 2), 16) ~= 0 and redis.call('HGET', P .. 'big', A[2][at]) or false
    elseif body then
        bodies[at] = string.sub(body, 1, (struct.unpack('>I2', body, 3)))
    end
end
return { digits(now), bodies, fields('mut', A[2]), fields('lease', A[2]), bigs }
