-- insert_lane: numbers a new lane.
INSERT INTO lanes (kind, tenant, priority, shard) VALUES (?1, ?2, ?3, ?4) RETURNING lane;
