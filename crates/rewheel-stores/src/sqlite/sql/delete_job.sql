-- delete_job: takes a job out of the hot table, which another table has by now.
DELETE FROM jobs WHERE id = ?1;
