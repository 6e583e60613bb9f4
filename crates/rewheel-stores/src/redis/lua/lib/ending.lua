-- ending: moves a job into a state without a holder. Settle, give-back, sweep, deadline and change all end here.

-- Sets until when the key of an ended job is known.
local function end_key(j, keep_key)
    if not j.b.key then
        return
    end
    local kind, tenant = names(j.b.lane)
    local field = kind .. '\0' .. tenant .. '\0' .. j.b.key
    local row = redis.call('HGET', P .. 'keys', field)
    -- Another job may have the key by now.
    if row and string.sub(row, 1, 16) == j.id then
        local expires = plus(now, keep_key)
        redis.call('HSET', P .. 'keys', field, string.sub(row, 1, 48) .. struct.pack('>c1d', j.m.state, expires))
        redis.call('ZADD', P .. 'keys_expire', expires, field)
    end
end

-- Returns the number of jobs that were deleted at once: zero or one.
local function let_go(j, to, keep_job, keep_key)
    local m = j.m
    if j.l then
        m.fence, m.version = j.l.fence, j.l.version
        j.l = nil
    end
    local final = TABLES[to] == 'done'
    m.state, m.version = to, m.version + 1
    m.ended = (final or to == 'd') and now or 0
    m.blocked = to == 's' and is_behind(j) and 1 or 0
    j.expires = plus(now, keep_job)
    j.gone = final and keep_job == 0
    local line = line_of(j)
    if final then
        end_key(j, keep_key)
    end
    commit(j)
    if line then
        if final then
            leave_line(line, j.id)
        end
        release(line, true)
    end
    return j.gone and 1 or 0
end
