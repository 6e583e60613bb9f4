-- delete_job: takes a job out of the hot table, which another table has by now or nobody wants to keep.
DELETE FROM jobs WHERE seq = ?1;
