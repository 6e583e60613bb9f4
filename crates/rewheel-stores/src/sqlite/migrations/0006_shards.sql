-- 0006: a lane is (kind, tenant, priority, shard). Existing lanes belong to no particular shard.
ALTER TABLE lanes ADD COLUMN shard INTEGER NOT NULL DEFAULT 0;
DROP INDEX lanes_name;
CREATE UNIQUE INDEX lanes_name ON lanes (kind, tenant, priority, shard);
