-- prune_reserved: room that the forgotten had set aside: few, since whoever asks for the same tenant clears away what the
-- dead had. Contract: OperateStore::prune.
DELETE FROM reserved WHERE holder NOT IN (SELECT seq FROM holders);
