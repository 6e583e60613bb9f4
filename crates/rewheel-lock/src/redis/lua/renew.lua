-- renew: starts the lease of ARGV[4] milliseconds again, if the request ARGV[3] has the lock. Returns 1 if it has.

-- A server without free memory refuses to add anything as the first write of a script: renewals must work on it.
redis.call('HDEL', KEYS[1], '')
local lock = load()
if lock.holder ~= ARGV[3] then
    return 0
end
lock.lease = tonumber(ARGV[4])
lock.till = now + lock.lease
save(lock)
return 1
