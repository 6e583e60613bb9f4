-- insert_kind_name: writes the name of a new kind. Contract: KindStore::put_kinds.
INSERT INTO rewheel_kind_names (name) VALUES (?);
