-- kind_use: tells whether a kind has jobs that have not ended.

local function kind_is_used(kind)
    for _, state in ipairs({ 's', 'l', 'p', 'd' }) do
        if redis.call('HEXISTS', P .. 'counts', 'k' .. kind .. '\0' .. state) == 1 then
            return true
        end
    end
    return false
end
