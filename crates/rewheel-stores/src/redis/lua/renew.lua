-- renew: renews the lease of a holder, and returns what people want of its jobs.
-- Arguments: offset, holder, most.
-- {include base spare holder}
local raw = redis.call('HGET', P .. 'holders', A[2])
local died, renewals = 1, 0
if raw then
    died, renewals = struct.unpack('>dd', raw)
end
if died ~= 0 then
    return redis.error_reply('DEAD the holder is dead or unknown')
end
redis.call('HSET', P .. 'holders', A[2], struct.pack('>ddd', 0, renewals + 1, now) .. string.sub(raw, 25))
local wanted, ids = {}, redis.call('SRANDMEMBER', P .. 'wanted:' .. A[2], A[3])
table.sort(ids)
local leases = fields('lease', ids)
for at, id in ipairs(ids) do
    if leases[at] then
        wanted[#wanted + 1] = { id, leases[at] }
    end
end
return { digits(now), digits(renewals + 1), wanted }
