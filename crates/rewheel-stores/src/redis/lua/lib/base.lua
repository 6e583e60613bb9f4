-- base: what every script begins with: the prefix of all keys, the arguments, the time and the numbers.

-- All keys of a store share this prefix. It contains a hash tag, so that a cluster keeps them in one slot.
local P = KEYS[1]
-- A list of arguments; the first is the offset of the store's clock.
local A = cmsgpack.unpack(ARGV[1])

-- Lua has only doubles, which are exact up to 2^53. The last exact number stands for the end of time; fences, versions and counters
-- start at zero and cannot get there.
local FOREVER = 9007199254740991

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000) + A[1]

-- The largest number of values that one command gets: Lua cannot pass more than 7,999.
local SLICE = 1000

-- Returns the time this much later, at most the end of time.
local function plus(time, millis)
    return math.min(time + millis, FOREVER)
end

-- Writes a number without losing digits, which tostring would.
local function digits(number)
    return string.format('%.0f', number)
end

-- Runs a command for many values, a slice at a time.
local function many(command, name, values)
    for first = 1, #values, SLICE do
        redis.call(command, P .. name, unpack(values, first, math.min(first + SLICE - 1, #values)))
    end
end

-- Reads fields of a hash, a slice at a time.
local function fields(name, ids)
    if #ids <= SLICE then
        return #ids == 0 and {} or redis.call('HMGET', P .. name, unpack(ids))
    end
    local found = {}
    for first = 1, #ids, SLICE do
        local part = redis.call('HMGET', P .. name, unpack(ids, first, math.min(first + SLICE - 1, #ids)))
        for at = 1, #part do
            found[first + at - 1] = part[at]
        end
    end
    return found
end

-- Returns the next number of a sequence.
local function next_number(of)
    return redis.call('HINCRBY', P .. 'meta', of, 1)
end
