-- now: returns the time.
-- Arguments: offset.
-- {include base}
return digits(now)
