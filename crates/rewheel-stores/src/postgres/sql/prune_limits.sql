-- prune_limits: deletes limits under which no job was started for $2. Contract: OperateStore::prune. A locked row is in use. There are
-- few rows: one for each kind and tenant with a limit.
WITH found AS MATERIALIZED (
    SELECT limits.ctid AS place FROM rewheel.limits WHERE last_ms <= rewheel.now_ms() + $1 - $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM rewheel.limits USING found WHERE limits.ctid = found.place;
