-- children: reads the ids of jobs that a job submitted, from the newest. Contract: ReadStore::list.
SELECT job FROM rewheel_children WHERE parent = ? AND job < ? ORDER BY job DESC LIMIT ?;
