-- unannounced: returns dead letters that were not announced, the oldest first.
-- Arguments: offset, limit.
-- {include base}
local ids = redis.call('ZRANGE', P .. 'unannounced', 0, A[2] - 1)
return { ids, fields('body', ids), fields('mut', ids) }
