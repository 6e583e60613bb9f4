-- unreadable: reads the jobs that were set aside because their rows cannot be read, and why. Contract: Store::risks.
SELECT job, reason FROM rewheel_unreadable ORDER BY job
