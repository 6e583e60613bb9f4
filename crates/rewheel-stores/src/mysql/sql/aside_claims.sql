-- aside_claims: reads claims of a holder that have lasted for long.
SELECT seq, lane, jobs FROM rewheel_claims WHERE holder = ? AND aside = 0 AND leased_ms <= ? LIMIT 100;
