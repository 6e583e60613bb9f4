-- claim_look: finds out why a claim of kinds $3 by holder $1 got no jobs of some: whether the holder is alive, and whether it may probe a
-- parked kind.
SELECT rewheel.now_ms() + $2, EXISTS (SELECT FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL),
       EXISTS (SELECT FROM rewheel.kinds
                WHERE name = ANY ($3::text[]) AND NOT paused AND parked_ms IS NOT NULL AND prober = $1 AND probe_job IS NULL);
