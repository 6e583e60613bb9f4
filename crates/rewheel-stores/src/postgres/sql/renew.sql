-- renew: renews a holder's lease, in one row however many jobs it has. Returns what operators want of its jobs, at most $3 of them.
-- Contract: LeaseStore::renew.
WITH renewed AS (
    UPDATE rewheel.holders SET renewals = renewals + 1, renewed_ms = rewheel.now_ms() + $2
     WHERE id = $1 AND died_ms IS NULL
    RETURNING renewed_ms, seq, renewals
)
SELECT renewed_ms, renewals, job.id, job.fence, job.wanted
  FROM renewed LEFT JOIN LATERAL (SELECT id, fence, wanted FROM rewheel.jobs WHERE wanted IS NOT NULL AND holder = renewed.seq
                                   LIMIT $3) AS job ON true;
