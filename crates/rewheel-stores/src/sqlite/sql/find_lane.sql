-- find_lane: reads the number of a lane.
SELECT lane FROM lanes WHERE kind = ?1 AND tenant = ?2 AND priority = ?3 AND shard = ?4;
