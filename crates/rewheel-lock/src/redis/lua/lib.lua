-- lib: what the scripts of all verbs share: reading and writing the record of a lock.
--
-- KEYS[1] is the hash of the lock, KEYS[2] the largest token of all locks. ARGV[1] moves the clock, in tests. ARGV[2] is how long a
-- place in line is kept. The rules are those of src/record.rs; a test compares both.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(ARGV[1]) * 1000
local now = math.floor(now_us / 1000)
local place_ttl = tonumber(ARGV[2])

-- Numbers are doubles: exact up to 2^53, but printed with only 14 digits.
local function text(number)
    return string.format('%.0f', number)
end

local function load()
    local found = redis.call('HMGET', KEYS[1], 'token', 'holder', 'owner', 'until', 'lease', 'line')
    local lock = { token = tonumber(found[1] or '0'), holder = found[2] or '', owner = found[3] or '', line = {} }
    lock.lease = tonumber(found[5] or '0')
    -- Nothing ends later than its full time from now: otherwise the clock went back. This must be written, or it would be limited anew
    -- at each look.
    local till = tonumber(found[4] or '0')
    lock.till = math.min(till, now + lock.lease)
    lock.is_tidied = lock.till ~= till
    for id, till in string.gmatch(found[6] or '', '(%x+):(%d+)') do
        local limited = math.min(tonumber(till), now + place_ttl)
        if limited > now then
            table.insert(lock.line, { id = id, till = limited })
        end
        lock.is_tidied = lock.is_tidied or limited ~= tonumber(till) or limited <= now
    end
    return lock
end

local function save(lock)
    if lock.holder == '' and #lock.line == 0 then
        redis.call('DEL', KEYS[1])
        return
    end
    local line = {}
    for index, place in ipairs(lock.line) do
        line[index] = place.id .. ':' .. text(place.till)
    end
    redis.call('HSET', KEYS[1], 'token', text(lock.token), 'holder', lock.holder, 'owner', lock.owner,
        'until', text(lock.till), 'lease', text(lock.lease), 'line', table.concat(line, ','))
    -- Removes what a crashed process left behind, long after it has expired.
    redis.call('PEXPIRE', KEYS[1], text(2 * math.max(lock.lease, place_ttl) + 60000))
end

local function is_held(lock)
    return lock.holder ~= '' and lock.till > now
end

-- The holder as an answer: owner, token, time left. Empty if there is none.
local function holder(lock)
    if is_held(lock) then
        return { lock.owner, text(lock.token), lock.till - now }
    end
    return {}
end
