-- name_holder: reads the name of a holder.
SELECT name FROM rewheel_holders WHERE id = ?;
