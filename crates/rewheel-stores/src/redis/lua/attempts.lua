-- attempts: returns the records of failed attempts, and the record of the one that succeeded.
-- Arguments: offset, job.
-- {include base lane job}
local body = redis.call('HGET', P .. 'body', A[2])
if not body then
    return { {}, '', '0' }
end
local m = read_mut(redis.call('HGET', P .. 'mut', A[2]), read_body(body))
return { redis.call('LRANGE', P .. 'at:' .. A[2], 0, -1), m.success, digits(m.ended) }
