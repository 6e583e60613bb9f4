-- want: writes what a user requests for a leased job. Contract: OperateStore::change.
UPDATE rewheel_jobs FORCE INDEX (id) SET wanted = ?, version = version + 1 WHERE id = ?;
