-- delete_jobs: deletes live jobs that were moved to another table or end without retention.
DELETE FROM jobs WHERE seq IN rarray(?1);
