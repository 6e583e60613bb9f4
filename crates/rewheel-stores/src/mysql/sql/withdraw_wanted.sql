-- withdraw_wanted: a user withdraws what was requested for a leased job. Contract: OperateStore::change.
DELETE wanted FROM rewheel_jobs jobs FORCE INDEX (id) STRAIGHT_JOIN rewheel_wanted wanted ON wanted.holder = jobs.holder AND wanted.job = jobs.id
 WHERE jobs.id = ?;
