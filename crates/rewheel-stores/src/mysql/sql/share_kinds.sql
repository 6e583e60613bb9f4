-- share_kinds: reads which kinds exist. The lock keeps others from deleting them until a user's transaction ends; they can be changed.
SELECT name, 0, 0 FROM rewheel_kind_names FORCE INDEX (PRIMARY) WHERE name IN ({list}) LOCK IN SHARE MODE;
