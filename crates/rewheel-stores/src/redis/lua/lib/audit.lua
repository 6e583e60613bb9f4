-- audit: appends to the audit log. Entries keep the values; the reader makes sentences of them.

local function note(entry, job)
    local number = next_number('audit')
    redis.call('XADD', P .. 'audit', digits(number) .. '-0', 'e', cmsgpack.pack(entry))
    if job then
        redis.call('RPUSH', P .. 'aj:' .. job, digits(number))
    end
end

-- Writes an entry that the caller has made: {author, what, job or false, kind or false, before, after, time}. The time is that of the
-- decision, if the caller has made one.
local function note_made(made)
    note({ 'N', made[7] or now, made[1], made[2], made[3], made[4], made[5], made[6] }, made[3])
end

-- Writes what the engine did to a job: a takeover, an end without success, or both.
-- `f`: cause, from, to, holder, fence, wanted, takeovers, counted, failure.
local function note_fate(j, by, f)
    local author = by and (name_of(by) or by) or false
    local known = by and name_of(by) and true or false
    local kind = names(j.b.lane)
    local values = { f.cause, f.from, f.to, f.holder or false, f.fence, f.wanted or false, f.takeovers, f.counted, f.failure or '' }
    if f.cause == 't' then
        note({ 'T', now, author, known, j.id, kind, values }, j.id)
    end
    if f.to == 'd' or f.to == 'F' or f.to == 'C' then
        note({ 'E', now, author, known, j.id, kind, values }, j.id)
    end
end
