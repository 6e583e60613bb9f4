-- 0022: indexes of groups keep dead letters apart, and the store knows which formats are in use.
CREATE INDEX group_members_live ON group_members (group_key, kind, tenant, place) WHERE dead = 0;
CREATE INDEX group_members_dead ON group_members (group_key, kind, tenant, place) WHERE dead = 1;
CREATE INDEX group_members_key ON group_members (group_key, dead, job);
DROP INDEX group_members_line;

-- The formats that stored jobs have used, see `holders.format`. Only grows.
CREATE TABLE formats_used (format INTEGER PRIMARY KEY) STRICT;
INSERT INTO formats_used SELECT min(format) FROM holders WHERE died_ms IS NULL HAVING min(format) > 0;
INSERT INTO formats_used SELECT 4 WHERE EXISTS (SELECT 1 FROM group_members) ON CONFLICT DO NOTHING;

-- Refuses a holder whose release is too old for a format in use. A release that does not know formats does not ask: so the table does.
CREATE TRIGGER refuse_old_holder BEFORE INSERT ON holders
WHEN NEW.format < (SELECT max(format) FROM formats_used)
BEGIN
    SELECT RAISE(ABORT, 'the release of this holder is too old for jobs in this store: upgrade it');
END;
