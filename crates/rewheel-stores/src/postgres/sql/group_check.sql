-- group_check: lists lines ($1 to $3: group, kind, tenant) that have to be looked at when this transaction has committed.
INSERT INTO rewheel.group_checks (group_key, kind, tenant)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS line (group_key, kind, tenant);
