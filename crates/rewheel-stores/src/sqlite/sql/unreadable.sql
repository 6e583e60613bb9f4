-- unreadable: jobs that are set aside since their rows could not be read, and why. Contract: Store::risks.
SELECT job, reason FROM unreadable ORDER BY job;
