-- delete_kind: deletes a kind. Contract: KindStore::edit_kind.
DELETE FROM rewheel_kinds WHERE name = ?
