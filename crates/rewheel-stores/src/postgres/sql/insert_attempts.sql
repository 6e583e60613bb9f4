-- insert_attempts: stores the records of failed attempts of holder $1.
INSERT INTO rewheel.attempts (holder, job, attempt, fence, started_ms, duration_ms, category, code, message, decision, delay_ms)
SELECT $1, given.*
  FROM unnest($2::uuid[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::text[],
              $10::text[], $11::bigint[])
       AS given (job, attempt, fence, started_ms, duration_ms, category, code, message, decision, delay_ms);
