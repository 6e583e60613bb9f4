-- keep_lease: keeps sticky retries with their holder $1, under a new fence, now $2. Contract: WorkStore::settle. The jobs are locked, and
-- are found by id whatever the statistics say.
UPDATE rewheel.jobs
   SET fence = fence + 1, version = version + 1, attempt = given.attempt, due_ms = given.due_ms, because = given.because,
       leased_ms = $2, overdue_ms = given.overdue_ms, shelf = 'held', held_by = $1, held_until_ms = given.overdue_ms,
       settled_by = $1, settled_fence = fence, settled_kept = true,
       failure_category = coalesce(given.category, failure_category),
       failure_code = CASE WHEN given.category IS NULL THEN failure_code ELSE given.code END,
       failure_message = coalesce(given.message, failure_message)
  FROM unnest($3::uuid[], $4::int[], $5::bigint[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[])
       AS given (id, attempt, due_ms, because, overdue_ms, category, code, message),
       LATERAL (SELECT jobs.ctid AS place FROM rewheel.jobs WHERE jobs.id = given.id OFFSET 0) AS found
 WHERE jobs.ctid = found.place;
