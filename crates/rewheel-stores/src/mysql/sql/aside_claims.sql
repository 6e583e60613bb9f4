-- aside_claims: reads claims that have lasted for long, after a claim, the oldest first. Locks none: settles of their jobs write them.
SELECT leased_ms, seq, jobs_left, jobs FROM rewheel_claims FORCE INDEX (aside)
 WHERE aside = 0 AND leased_ms <= ? AND (leased_ms > ? OR (leased_ms = ? AND seq > ?)) ORDER BY leased_ms, seq LIMIT ?;
