-- lock_dead: locks and reads one dead letter for a change by an operator.
SELECT {ended_job} FROM rewheel.dead WHERE id = $1 FOR UPDATE;
