-- delete_kind_name: deletes the name of a kind. Waits for users' transactions that submit jobs of it. Contract: KindStore::edit_kind.
DELETE FROM rewheel_kind_names WHERE name = ?;
