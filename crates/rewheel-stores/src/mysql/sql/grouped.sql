-- grouped: reads the ids of jobs in groups with a key, from the newest. Contract: ReadStore::list.
SELECT job FROM rewheel_grouped WHERE group_key = ? AND job < ? ORDER BY job DESC LIMIT ?;
