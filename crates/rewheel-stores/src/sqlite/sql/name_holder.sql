-- name_holder: reads the name of a holder.
SELECT name FROM holders WHERE id = ?1;
