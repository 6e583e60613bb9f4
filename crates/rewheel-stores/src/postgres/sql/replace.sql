-- replace: writes what submits give to jobs that wait to be claimed for the first time, and that this transaction has locked or stored.
-- $2 is how often each of jobs $1, in the order of their ids, was replaced. Contract: SubmitStore::insert.
UPDATE rewheel.jobs
   SET {replaced}, due_ms = given.due_at, deadline_ms = given.deadline_at, because = 'submitted',
       attempt = coalesce(given.attempts_made, 0), attempts_before = coalesce(given.attempts_made, 0),
       version = version + ($2::bigint[])[width_bucket(given.id, $1::uuid[])]
  FROM {new_jobs}
 WHERE jobs.id = given.id
RETURNING jobs.lane, jobs.due_ms;
