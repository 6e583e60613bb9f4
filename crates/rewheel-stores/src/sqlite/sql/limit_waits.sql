-- limit_waits: reads when a job was last started under the limit of ?1 (`kind` or `tenant`) named ?2, and counts the jobs leased under
-- it, up to ?3. Contract: ReadStore::limit_waits. Reads leased jobs only, whose number is limited by the concurrency of the holders.
SELECT (SELECT last_ms FROM limits WHERE scope = ?1 AND name = ?2),
       (SELECT count(*) FROM (
            SELECT 1 FROM jobs INDEXED BY jobs_held CROSS JOIN lanes ON lanes.lane = jobs.lane
             WHERE jobs.state = 'leased' AND CASE ?1 WHEN 'kind' THEN lanes.kind ELSE lanes.tenant END = ?2
             LIMIT ?3));
