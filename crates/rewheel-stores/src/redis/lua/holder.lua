-- holder: returns the record of one holder, and the time.
-- Arguments: offset, holder.
-- {include base}
return { digits(now), redis.call('HGET', P .. 'holders', A[2]) }
