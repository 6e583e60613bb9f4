-- prune_lines: finds and locks lines that have had no members since a time, the oldest first. Contract: OperateStore::prune.
SELECT group_key, kind, tenant, head FROM rewheel_lines FORCE INDEX (idle) WHERE idle_ms <= ? ORDER BY idle_ms LIMIT ? FOR UPDATE SKIP LOCKED;
