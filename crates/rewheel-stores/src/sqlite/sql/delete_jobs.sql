-- delete_jobs: takes jobs out of the hot table, which another table has by now or nobody wants to keep.
DELETE FROM jobs WHERE seq IN rarray(?1);
