-- check_lanes: reads which lanes have these numbers. Nodes cache numbers; after a restore a number may belong to another lane, or to none.
SELECT kind, tenant, priority, shard, lane FROM rewheel_lanes FORCE INDEX (PRIMARY) WHERE lane IN ({list});
