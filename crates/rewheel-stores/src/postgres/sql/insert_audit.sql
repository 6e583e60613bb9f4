-- insert_audit: appends entries to the audit log, now $1, numbered in the given order.
INSERT INTO rewheel.audit (at_ms, who, what, job, kind, before, after)
SELECT $1, given.*
  FROM unnest($2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[]) AS given (who, what, job, kind, before, after);
