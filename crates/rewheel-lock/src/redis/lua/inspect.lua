-- inspect: returns the holder of the lock, and the number of requests that wait.

local lock = load()
return { holder(lock), #lock.line }
