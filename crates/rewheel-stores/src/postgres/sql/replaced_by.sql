-- replaced_by: reads the jobs that submits $1 replaced when they were sent before.
SELECT submit, job FROM rewheel.audit WHERE submit = ANY ($1::uuid[]);
