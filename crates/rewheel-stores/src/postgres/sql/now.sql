-- now: reads the store's time with clock offset $1. Contract: ReadStore::now.
SELECT rewheel.now_ms() + $1;
