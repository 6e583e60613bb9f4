-- let_go: jobs are nobody's any more, and live on. Contract: WorkStore::settle, give_back, LeaseStore::sweep.
-- What is NULL stays as it was. The jobs are locked, and found by their ids whatever the statistics say.
UPDATE rewheel.jobs
   SET state = given.state, version = version + 1, fence = given.fence, attempt = given.attempt, takeovers = given.takeovers,
       takeovers_counted = given.takeovers_counted, due_ms = coalesce(given.due_ms, jobs.due_ms),
       because = coalesce(given.because, jobs.because),
       holder = NULL, leased_ms = NULL, overdue_ms = NULL, wanted = NULL, started_fence = NULL, settled_kept = NULL,
       settled_by = coalesce(given.settled_by, jobs.settled_by),
       settled_fence = coalesce(given.settled_fence, jobs.settled_fence),
       failure_category = coalesce(given.category, failure_category),
       failure_code = CASE WHEN given.category IS NULL THEN failure_code ELSE given.code END,
       failure_message = coalesce(given.message, failure_message)
  FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::int[], $5::int[], $6::int[], $7::bigint[], $8::text[], $9::int[],
              $10::bigint[], $11::text[], $12::text[], $13::text[])
       AS given (id, state, fence, attempt, takeovers, takeovers_counted, due_ms, because, settled_by, settled_fence,
                 category, code, message),
       LATERAL (SELECT jobs.ctid AS place FROM rewheel.jobs WHERE jobs.id = given.id OFFSET 0) AS found
 WHERE jobs.ctid = found.place;
