-- find_kinds: reads whether kinds may be claimed. The lock keeps others from deleting them until the jobs are stored.
SELECT name, paused, parked_ms IS NOT NULL FROM rewheel_kinds FORCE INDEX (PRIMARY) WHERE name IN ({list}) LOCK IN SHARE MODE;
