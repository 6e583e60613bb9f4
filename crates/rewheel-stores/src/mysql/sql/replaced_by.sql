-- replaced_by: reads the job that a submit replaced when it was sent before.
SELECT job FROM rewheel_audit WHERE submit = ? LIMIT 1;
