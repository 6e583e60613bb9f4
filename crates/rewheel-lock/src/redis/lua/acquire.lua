-- acquire: takes the lock for the request ARGV[3] of the owner ARGV[4] with a lease of ARGV[5] milliseconds, if it is free and no
-- other request is first in line. Otherwise the request waits if ARGV[6] is 'wait', in a line of at most ARGV[7] requests. KEYS[3] exists
-- if the request was released before this call arrived.

local id, lease = ARGV[3], tonumber(ARGV[5])
local lock = load()

-- No process waits for the answer, or would give back what the call gets.
if redis.call('EXISTS', KEYS[3]) == 1 then
    return { 'busy', holder(lock) }
end

local ahead
for index, place in ipairs(lock.line) do
    if place.id == id then ahead = index - 1 end
end
if lock.holder == id or ahead then
    -- A server without free memory refuses to add anything as the first write of a script: what the request has must not expire.
    redis.call('HDEL', KEYS[1], '')
end

-- The request asks again because it did not get the first answer.
if lock.holder == id then
    lock.lease, lock.till = lease, now + lease
    save(lock)
    return { 'acquired', text(lock.token) }
end

if not is_held(lock) and (#lock.line == 0 or ahead == 0) then
    if ahead == 0 then table.remove(lock.line, 1) end
    -- The time is larger than the tokens of a server that has lost its data; the last token is larger than the time of a clock that
    -- went back.
    lock.token = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, lock.token + 1, now_us)
    redis.call('SET', KEYS[2], text(lock.token))
    lock.holder, lock.owner, lock.lease, lock.till = id, ARGV[4], lease, now + lease
    save(lock)
    return { 'acquired', text(lock.token) }
end

if ARGV[6] ~= 'wait' then
    if lock.is_tidied then save(lock) end
    return { 'busy', holder(lock) }
end
if ahead == nil then
    if #lock.line >= tonumber(ARGV[7]) then
        return { 'full' }
    end
    ahead = #lock.line
    table.insert(lock.line, { id = id, till = now + place_ttl })
    save(lock)
elseif lock.line[ahead + 1].till - now < place_ttl * 2 / 3 then
    lock.line[ahead + 1].till = now + place_ttl
    save(lock)
elseif lock.is_tidied then
    save(lock)
end

local look_again = is_held(lock) and lock.till - now or 0
for index = 1, ahead do
    local left = lock.line[index].till - now
    if index == 1 or left < look_again then look_again = left end
end
return { 'waiting', ahead, look_again, holder(lock) }
