-- set_aside: pauses jobs that cannot be read, so that they do not block others.
-- Arguments: offset, origin, jobs {id, reason}.
-- {include base spare holder lane job audit group ending}
for _, aside in ipairs(A[3]) do
    local ok, j = pcall(function()
        return load({ aside[1] })[aside[1]]
    end)
    if ok and j and LIVE[state_of(j)] then
        let_go(j, 'p', FOREVER, FOREVER)
        redis.call('HSET', P .. 'unreadable', aside[1], aside[2])
    end
end
write_counts()
return report(A[2])
