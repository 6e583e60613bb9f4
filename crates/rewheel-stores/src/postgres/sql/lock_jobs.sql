-- lock_jobs: waits until every insert under way has ended, and keeps others out until the transaction ends. Contract: KindStore::edit_kind.
LOCK TABLE rewheel.jobs IN SHARE MODE;
