-- attempts: reads the latest failed attempts of a job, newest first. Contract: ReadStore::attempts.
SELECT attempt, fence, holder, started_ms, duration_ms, category, code, message, decision, delay_ms, dropped
  FROM rewheel_attempts FORCE INDEX (job) WHERE job = ? ORDER BY seq DESC LIMIT ?
