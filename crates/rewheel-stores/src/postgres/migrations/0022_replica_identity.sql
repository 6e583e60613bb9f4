-- 0022: every table can be part of a publication for logical replication. PostgreSQL refuses to delete from a published table without a
-- primary key, so with `FOR ALL TABLES` no job could be settled. A key would cost an index; this costs nothing unless wal_level is logical.
ALTER TABLE rewheel.attempts REPLICA IDENTITY FULL;
