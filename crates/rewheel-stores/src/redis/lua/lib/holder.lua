-- holder: reads the record of a holder. Its first number is the time of its death, zero while it lives.

local HOLDER = '>dddddI4BBc0Bc0'

local function alive(holder)
    local raw = redis.call('HGET', P .. 'holders', holder)
    return raw and struct.unpack('>d', raw) == 0
end

-- Returns the name of a holder, for the audit log; nothing if it is not known any more.
local function name_of(holder)
    local raw = redis.call('HGET', P .. 'holders', holder)
    return raw and select(8, struct.unpack(HOLDER, raw))
end
