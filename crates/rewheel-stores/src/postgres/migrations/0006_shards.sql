-- 0006: a lane is (kind, tenant, priority, shard). Existing lanes belong to no particular shard. `rewheel_submit` names no shard: it
-- takes any lane of the job's kind, tenant and priority.
ALTER TABLE rewheel.lanes ADD COLUMN shard integer NOT NULL DEFAULT 0;
ALTER TABLE rewheel.lanes DROP CONSTRAINT lanes_kind_tenant_priority_key;
ALTER TABLE rewheel.lanes ADD UNIQUE (kind, tenant, priority, shard);
