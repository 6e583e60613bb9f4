-- claim_look: why a claim of kinds $3 by holder $1 got nothing of some: it is dead, or may have one job of a parked kind.
SELECT rewheel.now_ms() + $2, EXISTS (SELECT FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL),
       EXISTS (SELECT FROM rewheel.kinds
                WHERE name = ANY ($3::text[]) AND NOT paused AND parked_ms IS NOT NULL AND prober = $1 AND probe_job IS NULL);
