-- audit_job: reads the audit log of job $3 before $1, newest first. Contract: ReadStore::audit.
SELECT seq, at_ms, who, what, job, kind, before, after
  FROM rewheel.audit WHERE job = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2;
