-- delete_kind: deletes a kind. Contract: KindStore::edit_kind.
DELETE FROM kinds WHERE name = ?1;
