-- held: what holder $1 has for $3 or longer, by id behind $4. Contract: WorkStore::held.
SELECT id, fence FROM rewheel.jobs
 WHERE state = 'leased' AND holder = (SELECT seq FROM rewheel.holders WHERE holders.id = $1)
   AND leased_ms <= rewheel.now_ms() + $2 - $3 AND ($4::uuid IS NULL OR id > $4)
 ORDER BY id LIMIT $5;
