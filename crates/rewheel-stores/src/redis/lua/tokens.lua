-- tokens: returns all tokens, the number of their latest change and the time.
-- Arguments: offset.
-- {include base}
return { digits(now), redis.call('HGET', P .. 'meta', 'tokens') or '0', redis.call('HVALS', P .. 'tokens') }
