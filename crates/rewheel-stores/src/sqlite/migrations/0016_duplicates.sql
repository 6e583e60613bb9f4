-- 0016: the submit that replaced a job that was waiting, so that it has no effect when it is sent again. The lane of a debounced job has
-- 256 added to its shard.
ALTER TABLE audit ADD COLUMN submit BLOB;
CREATE INDEX audit_submit ON audit (submit) WHERE submit IS NOT NULL;
