-- delete_kind: one kind. Contract: KindStore::edit_kind.
DELETE FROM kinds WHERE name = ?1;
