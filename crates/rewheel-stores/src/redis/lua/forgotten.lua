-- forgotten: adds what a node misses since an epoch began, and returns the sums of the epochs that began since then.
-- Arguments: offset, since, then to add: epoch, submitted, ended.
-- {include base spare}
local name, sums = P .. 'forgotten', { 0, 0, 0, 0 }
if A[3] then
    local row = redis.call('HGET', name, digits(A[3]))
    local submitted, ended, nodes = struct.unpack('>ddd', row or struct.pack('>ddd', 0, 0, 0))
    redis.call('HSET', name, digits(A[3]), struct.pack('>ddd', submitted + A[4], ended + A[5], nodes + 1))
end
local rows = redis.call('HGETALL', name)
for at = 1, #rows, 2 do
    local epoch, submitted, ended, nodes = tonumber(rows[at]), struct.unpack('>ddd', rows[at + 1])
    if plus(epoch, A[2]) <= now then
        redis.call('HDEL', name, rows[at])
    elseif submitted + ended > 0 then
        sums = { sums[1] + submitted, sums[2] + ended, math.max(sums[3], nodes), math.max(sums[4], epoch) }
    end
end
return { digits(now), digits(sums[1]), digits(sums[2]), digits(sums[3]), digits(sums[4]) }
