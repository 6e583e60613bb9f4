-- prune_audit: deletes those of the oldest $2 audit entries that are $3 old or older. Contract: OperateStore::prune.
WITH found AS MATERIALIZED (SELECT audit.ctid AS place FROM rewheel.audit ORDER BY seq LIMIT $2)
DELETE FROM rewheel.audit USING found WHERE audit.ctid = found.place AND at_ms <= rewheel.now_ms() + $1 - $3;
