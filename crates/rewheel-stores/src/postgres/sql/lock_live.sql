-- lock_live: locks and reads one live job for a change by an operator.
SELECT {live_job} FROM rewheel.jobs WHERE id = $1 FOR UPDATE OF jobs;
