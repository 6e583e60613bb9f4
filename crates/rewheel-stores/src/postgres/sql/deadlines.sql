-- deadlines: locks at most $3 live jobs whose deadline has passed at $1, leased ones at $2. Contract: OperateStore::deadlines.
SELECT jobs.id, lane, state, fence, wanted, attempt, takeovers, takeovers_counted, started_fence, holder, key,
       group_key IS NOT NULL, settled_fence IS NULL, version,
       (SELECT holders.id FROM rewheel.holders WHERE holders.seq = jobs.holder)
  FROM rewheel.jobs
 WHERE deadline_ms IS NOT NULL AND deadline_ms <= $1 AND (state <> 'leased' OR deadline_ms <= $2)
   AND shelf <> 'unreadable'       -- those wait for an operator
 ORDER BY deadline_ms LIMIT $3
   FOR UPDATE OF jobs SKIP LOCKED;
