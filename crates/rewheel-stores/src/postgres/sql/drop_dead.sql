-- drop_dead: dead letters $1 end, and are not kept.
WITH tries AS (DELETE FROM rewheel.attempts WHERE job = ANY ($1::uuid[]))
DELETE FROM rewheel.dead WHERE id = ANY ($1::uuid[]);
