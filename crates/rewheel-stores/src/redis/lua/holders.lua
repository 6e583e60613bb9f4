-- holders: returns the records of all holders, and the time.
-- Arguments: offset.
-- {include base}
return { digits(now), redis.call('HGETALL', P .. 'holders') }
