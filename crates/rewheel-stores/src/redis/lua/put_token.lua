-- put_token: writes a token if no token changed since the caller has read them, and deletes others.
-- Arguments: offset, change, id, token, gone, note.
-- {include base audit}
if (redis.call('HGET', P .. 'meta', 'tokens') or '0') ~= A[2] then
    return 'again'
end
next_number('tokens')
many('HDEL', 'tokens', A[5])
redis.call('HSET', P .. 'tokens', A[3], A[4])
note_made(A[6])
return 'done'
