-- name_lane: what a lane's number stands for.
SELECT kind, tenant, priority, shard FROM lanes WHERE lane = ?1;
