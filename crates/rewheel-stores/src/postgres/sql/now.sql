-- now: the store's time, moved by $1. Contract: ReadStore::now.
SELECT rewheel.now_ms() + $1;
