-- limit_waits: when a job was last started under the limit of ?1 (`kind` or `tenant`) named ?2, and how many jobs are leased under it,
-- counted up to ?3. Contract: ReadStore::limit_waits. Looks at the leased jobs only, which are no more than the holders have
-- places for.
SELECT (SELECT last_ms FROM limits WHERE scope = ?1 AND name = ?2),
       (SELECT count(*) FROM (
            SELECT 1 FROM jobs INDEXED BY jobs_held CROSS JOIN lanes ON lanes.lane = jobs.lane
             WHERE jobs.state = 'leased' AND CASE ?1 WHEN 'kind' THEN lanes.kind ELSE lanes.tenant END = ?2
             LIMIT ?3));
