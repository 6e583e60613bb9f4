-- replaced_by: reads the job that submit ?1 replaced when it was sent before.
SELECT job FROM audit WHERE submit = ?1 LIMIT 1;
