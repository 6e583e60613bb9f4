-- insert_lane: numbers a lane the first time it is seen.
INSERT INTO lanes (kind, tenant, priority, shard) VALUES (?1, ?2, ?3, ?4) RETURNING lane;
