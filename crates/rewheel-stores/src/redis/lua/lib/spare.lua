-- spare: lets a script write although the memory of the server is full. A server that is full refuses the first command that adds
-- something, but not those after a write. All scripts have this part, except those
-- that accept new data: work goes on, ends and frees memory.

redis.call('HDEL', P .. 'lease', '')
