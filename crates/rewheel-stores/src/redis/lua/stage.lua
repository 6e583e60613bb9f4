-- stage: keeps a part of a batch that is stored together or not at all, unless one of its jobs is refused. No reader sees it yet.
-- The last part decides: from then on, the whole batch will be stored, whatever happens to the node.
-- Arguments: offset, batch, again, keep, last, jobs, number of the part. Without `keep`, it only says what is refused.
-- {include base holder lane job audit group store}
local id, again, keep, last, jobs, number = A[2], A[3] == 1, A[4] == 1, A[5] == 1, A[6], A[7]
if keep and redis.call('LLEN', P .. 'staged:' .. id) ~= number then
    return redis.error_reply('GIVENUP the parts before this one are gone')
end
local answers, refused, wrong, _, is_reserved = plan(jobs, again, id)
if is_reserved then
    return redis.error_reply(RESERVED)
end
if wrong then
    return { 'EXISTS', wrong }
end
for at, answer in ipairs(answers) do
    local what = answer[1]
    if what == 'C' or what == 'W' or what == 'P' and not answer[3] then
        answers[at] = { 'O' }
    end
end
if keep and not refused then
    redis.call('RPUSH', P .. 'staged:' .. id, ARGV[1])
    redis.call('ZADD', P .. 'staged', now, id)
    for _, new in ipairs(jobs) do
        if new[FIELD] then
            -- The first job of a batch with a key has it.
            redis.call('HSETNX', P .. 'staged_keys', new[FIELD], id .. new[ID] .. new[HASH])
        end
        -- From now on, holders that are too old for these jobs cannot join.
        use_format(new[FORMAT])
    end
    if last then
        redis.call('SADD', P .. 'decided', id)
    end
end
return { answers, refused and 1 or 0 }
