-- name_holder: what people call a holder.
SELECT name FROM holders WHERE id = ?1;
