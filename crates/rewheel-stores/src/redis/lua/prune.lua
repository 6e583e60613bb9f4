-- prune: deletes what has expired, at most `limit` of each sort.
-- Arguments: offset, limit, audit_older_than, results_remembered.
-- {include base spare holder lane job}
local limit = A[2]

local function expired(name)
    return redis.call('ZRANGEBYSCORE', P .. name, '-inf', now, 'LIMIT', 0, limit)
end

local function prune_finished()
    local ids, count = expired('expires'), 0
    load(ids)
    for _, id in ipairs(ids) do
        local j = known[id]
        if j then
            j.gone = true
            commit(j)
            count = count + 1
        else
            redis.call('ZREM', P .. 'expires', id)
        end
    end
    return count
end

-- Deletes results, and remembers for a while that they existed.
local function prune_results()
    local ids = expired('results_expire')
    for at, row in ipairs(fields('results', ids)) do
        if row == 'P' then
            redis.call('HDEL', P .. 'results', ids[at])
            redis.call('ZREM', P .. 'results_expire', ids[at])
        else
            redis.call('HSET', P .. 'results', ids[at], 'P')
            redis.call('ZADD', P .. 'results_expire', plus(now, A[4]), ids[at])
        end
    end
    return #ids
end

local function prune_keys()
    local names = expired('keys_expire')
    for _, field in ipairs(names) do
        redis.call('HDEL', P .. 'keys', field)
        local scope = string.match(field, '^(%Z*%z%Z*)%z')
        if redis.call('HINCRBY', P .. 'scopes', scope, -1) <= 0 then
            redis.call('HDEL', P .. 'scopes', scope)
        end
    end
    many('ZREM', 'keys_expire', names)
    return #names
end

local function forget_entry(entry)
    local values = cmsgpack.unpack(entry[2][2])
    local job = ({ N = 5, R = 3, T = 5, E = 5 })[values[1]]
    job = job and values[job]
    if job then
        -- The oldest entry of the log is the oldest of its job.
        redis.call('LPOP', P .. 'aj:' .. job)
    end
    if values[1] == 'R' then
        redis.call('HDEL', P .. 'replaced', values[9])
    end
end

local function prune_audit()
    local entries, gone = limit > 0 and redis.call('XRANGE', P .. 'audit', '-', '+', 'COUNT', limit) or {}, {}
    for _, entry in ipairs(entries) do
        local at = cmsgpack.unpack(entry[2][2])[2]
        if plus(at, A[3]) > now then
            break
        end
        forget_entry(entry)
        gone[#gone + 1] = entry[1]
    end
    many('XDEL', 'audit', gone)
    return #gone
end

-- Adds up the oldest lines of the ledger.
local function fold_ledger()
    local lines = redis.call('LLEN', P .. 'ledger')
    if lines <= 100 or limit == 0 then
        return 0
    end
    local oldest = redis.call('LPOP', P .. 'ledger', math.min(lines, limit + 1))
    local submitted, pruned = 0, 0
    for _, line in ipairs(oldest) do
        local more, less = string.match(line, '(%d+):(%d+)')
        submitted, pruned = submitted + more, pruned + less
    end
    redis.call('LPUSH', P .. 'ledger', digits(submitted) .. ':' .. digits(pruned))
    return #oldest - 1
end

local finished = prune_finished()
write_ledger(0, finished)
local counts = { finished, prune_results(), prune_keys(), prune_audit(), fold_ledger() }
write_counts()
return counts
