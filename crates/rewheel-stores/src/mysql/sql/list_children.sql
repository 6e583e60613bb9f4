-- list_children: reads which jobs a job submitted, from the newest id before a given one, in any state. Contract: ReadStore::list.
SELECT job FROM rewheel_children WHERE parent = ? AND job < ? ORDER BY job DESC LIMIT ?
