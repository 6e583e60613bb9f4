-- held: returns the leases of jobs that a holder has.
-- Arguments: offset, holder, jobs.
-- {include base}
return { digits(now), fields('lease', A[3]) }
