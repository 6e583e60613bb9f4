-- prune_reserved: room that the forgotten had set aside: few, since whoever asks for the same tenant clears away what the
-- dead had. Contract: OperateStore::prune.
DELETE FROM rewheel.reserved WHERE NOT EXISTS (SELECT FROM rewheel.holders WHERE seq = reserved.holder);
