-- drop_dead: nobody wants dead letter $1, and it is not kept.
WITH tries AS (DELETE FROM rewheel.attempts WHERE job = $1)
DELETE FROM rewheel.dead WHERE id = $1;
