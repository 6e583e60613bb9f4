-- attempts: reads the latest $2 failed attempts of a job, newest first. Contract: ReadStore::attempts.
SELECT attempt, fence, holder, started_ms, duration_ms, category, code, message, decision, delay_ms, dropped
  FROM rewheel.attempts WHERE job = $1 ORDER BY seq DESC LIMIT $2;
