-- lock_dead: reads and locks one dead letter.
SELECT {ended_job} FROM rewheel_dead WHERE id = ? FOR UPDATE;
