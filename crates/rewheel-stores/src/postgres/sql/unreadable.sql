-- unreadable: counts the jobs that were set aside because their rows cannot be read, and reads the first of them. Contract: Store::risks.
SELECT count(*), min(job::text), (array_agg(reason ORDER BY job))[1]
  FROM rewheel.unreadable
 WHERE (SELECT shelf FROM rewheel.jobs WHERE jobs.id = unreadable.job) = 'unreadable';
