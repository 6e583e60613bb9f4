-- result: returns what is known of the result of a job, and whether the job still exists.
-- Arguments: offset, job.
-- {include base}
return { redis.call('HGET', P .. 'results', A[2]), redis.call('HEXISTS', P .. 'body', A[2]) }
