-- drop_dead: deletes dead letters $1 that end without retention.
WITH tries AS (DELETE FROM rewheel.attempts WHERE job = ANY ($1::uuid[]))
DELETE FROM rewheel.dead WHERE id = ANY ($1::uuid[]);
