-- replace: writes what a submit gives to job ?1, which waits to be claimed for the first time. Contract: SubmitStore::insert. ?2 is its
-- due time, ?3 its deadline, ?4 the attempts that a call made before. The columns of the job follow.
UPDATE jobs SET due_ms = ?2, deadline_ms = ?3, attempt = ?4, attempts_before = ?4, because = 'submitted', version = version + 1,
                ({submitted}) = ({submitted_values})
 WHERE id = ?1;
