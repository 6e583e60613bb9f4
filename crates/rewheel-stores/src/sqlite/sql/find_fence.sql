-- find_fence: reads the fence of a live job.
SELECT fence FROM jobs WHERE id = ?1;
