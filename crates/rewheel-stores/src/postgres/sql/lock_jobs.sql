-- lock_jobs: waits for running inserts to end, and blocks new ones until the transaction ends. Contract: KindStore::edit_kind.
LOCK TABLE rewheel.jobs IN SHARE MODE;
