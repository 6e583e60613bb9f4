-- held_claims: reads the jobs that were leased to a holder and may still be.
SELECT jobs FROM rewheel_claims WHERE holder = ?;
