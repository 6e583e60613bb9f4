-- list_grouped: reads which jobs are in groups with a key, from the newest id before a given one, in any state. Contract: ReadStore::list.
SELECT job FROM rewheel_grouped WHERE group_key = ? AND job < ? ORDER BY job DESC LIMIT ?
