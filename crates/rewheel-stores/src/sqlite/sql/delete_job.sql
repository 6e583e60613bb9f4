-- delete_job: deletes a live job that was moved to another table or ends without retention.
DELETE FROM jobs WHERE seq = ?1;
