-- delete_kind: deletes a kind and its retry budget. Contract: KindStore::edit_kind.
WITH budget AS (DELETE FROM rewheel.budgets WHERE kind = $1),
     noted AS (UPDATE rewheel.kind_changes SET deleted = greatest(deleted, rewheel.change_number()))
DELETE FROM rewheel.kinds WHERE name = $1;
