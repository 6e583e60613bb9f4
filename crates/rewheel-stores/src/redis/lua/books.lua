-- books: returns the ledger and the number of live, dead and finished jobs, at one moment.
-- Arguments: offset.
-- {include base}
return { redis.call('LRANGE', P .. 'ledger', 0, -1), redis.call('ZCARD', P .. 'live'), redis.call('ZCARD', P .. 'dead'),
    redis.call('ZCARD', P .. 'done') }
