-- audit_replaces: appends to the audit log, now $1, that submits $7 by $2 replaced jobs $3.
INSERT INTO rewheel.audit (at_ms, who, what, job, kind, before, after, submit)
SELECT $1, $2, 'replace', given.*
  FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::uuid[]) AS given (job, kind, before, after, submit);
