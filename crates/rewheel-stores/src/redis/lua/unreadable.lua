-- unreadable: returns how many jobs were set aside because they cannot be read, and one of them. Those that people have resumed or ended
-- since are forgotten.
-- Arguments: offset.
-- {include base spare}
local rows = redis.call('HGETALL', P .. 'unreadable')
local count, first, reason = 0, false, false
for at = 1, #rows, 2 do
    local id = rows[at]
    local mut = redis.call('HGET', P .. 'mut', id)
    local paused = mut and string.sub(mut, 1, 1) == 'p' and redis.call('HEXISTS', P .. 'lease', id) == 0
    if paused or rows[at + 1] == 'its values' and redis.call('HEXISTS', P .. 'body', id) == 1 then
        count = count + 1
        if not first or id < first then
            first, reason = id, rows[at + 1]
        end
    else
        redis.call('HDEL', P .. 'unreadable', id)
    end
end
return { count, first, reason }
