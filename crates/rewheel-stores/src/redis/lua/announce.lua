-- announce: marks dead letters as announced, if they have not changed since.
-- Arguments: offset, letters {job, version}.
-- {include base spare lane job}
for _, letter in ipairs(A[2]) do
    local mut = redis.call('HGET', P .. 'mut', letter[1])
    if mut then
        local _, _, version = struct.unpack('>c1dd', mut)
        if version == letter[2] then
            redis.call('ZREM', P .. 'unannounced', letter[1])
        end
    end
end
return 1
