-- report_history: stores what nodes counted in some minutes, in place of their previous reports, and returns the time.
-- Arguments: offset, late_max, early_max, list of {start, name of the row, data}.
-- {include base}
for _, row in ipairs(A[4]) do
    if row[1] >= now - A[2] and row[1] <= now + A[3] then
        redis.call('ZADD', P .. 'history', digits(row[1]), row[2])
        redis.call('HSET', P .. 'history_data', row[2], row[3])
    end
end
return digits(now)
