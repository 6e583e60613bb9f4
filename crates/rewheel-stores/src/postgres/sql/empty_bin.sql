-- empty_bin: empties the expired bin $1 and returns the number of its jobs; NULL: not now. $2 is the clock offset. Contract:
-- OperateStore::prune.
SELECT rewheel.empty_bin($1, rewheel.now_ms() + $2);
