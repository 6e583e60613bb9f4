-- insert_kind_name: writes the names of new kinds. Contract: KindStore::put_kinds.
INSERT INTO rewheel_kind_names (name) VALUES {rows}(?)
