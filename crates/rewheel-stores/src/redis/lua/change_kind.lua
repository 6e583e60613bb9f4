-- change_kind: returns a kind with the records of all holders, for a change that depends on who lives.
-- Arguments: offset, name.
-- {include base}
return { digits(now), redis.call('HGET', P .. 'kinds', A[2]), redis.call('HGETALL', P .. 'holders') }
