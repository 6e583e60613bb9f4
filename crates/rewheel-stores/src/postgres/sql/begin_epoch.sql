-- begin_epoch: begins an epoch after epoch $1, the highest that this process has seen, for the reason $2; unless another process has begun
-- one on this server meanwhile.
SELECT rewheel.begin_epoch($1, $2);
