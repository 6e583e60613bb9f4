-- release: gives up what the request ARGV[3] has, the lock or its place in line. Tells the channel ARGV[4] which request is next.
-- Refuses calls of the request that arrive later, by KEYS[3] for ARGV[5] milliseconds. Returns whether it had the lock, and the next
-- request.

-- A server without free memory refuses to add anything as the first write of a script: release must work on it.
redis.call('DEL', KEYS[3])
if ARGV[5] ~= '0' then
    redis.call('SET', KEYS[3], '', 'PX', ARGV[5])
end
local lock = load()
local was_held = lock.holder == ARGV[3]
if was_held then
    lock.holder, lock.owner = '', ''
end
for index = #lock.line, 1, -1 do
    if lock.line[index].id == ARGV[3] then table.remove(lock.line, index) end
end
save(lock)
local next = ''
if not is_held(lock) and #lock.line > 0 then
    next = lock.line[1].id
    -- The lock is released already: a user who may not publish gets no error, and the next request polls.
    redis.pcall('PUBLISH', ARGV[4], next)
end
return { was_held and 1 or 0, next }
