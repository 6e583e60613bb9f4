-- group_checks: takes at most $2 lines to look at off the list, from transaction $1 on. Skips those that another node is looking at.
DELETE FROM rewheel.group_checks
 USING (SELECT one.ctid AS place FROM rewheel.group_checks AS one WHERE xact >= $1 ORDER BY xact LIMIT $2 FOR UPDATE SKIP LOCKED) AS found
 WHERE group_checks.ctid = found.place
RETURNING group_checks.group_key, group_checks.kind, group_checks.tenant;
