-- bins_expired: reads which bins hold only expired jobs. $1 is the clock offset. Contract: OperateStore::prune.
SELECT bin FROM rewheel.bins WHERE from_ms + width_ms <= rewheel.now_ms() + $1 ORDER BY bin;
