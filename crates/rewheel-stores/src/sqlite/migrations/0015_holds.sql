-- 0015: until when a parked kind is held, because the called service asked to wait.
ALTER TABLE kinds ADD COLUMN parked_until_ms INTEGER;
