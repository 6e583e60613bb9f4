-- replace: writes what a submit gives to a job that waits to be claimed for the first time. Contract: SubmitStore::insert.
UPDATE rewheel_jobs FORCE INDEX (id)
   SET lane = ?, place = ?, due_ms = ?, deadline_ms = ?, attempt = ?, attempts_before = ?, because = 'submitted', version = version + 1,
       {submitted_set}
 WHERE id = ?;
