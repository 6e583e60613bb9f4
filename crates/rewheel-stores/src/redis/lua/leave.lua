-- leave: deregisters a holder; repeating it changes nothing.
-- Arguments: offset, holder.
-- {include base spare holder}
local raw = redis.call('HGET', P .. 'holders', A[2])
if raw and struct.unpack('>d', raw) == 0 then
    redis.call('HSET', P .. 'holders', A[2], struct.pack('>d', now) .. string.sub(raw, 9))
end
return 1
