-- kind_changes: the latest change of a kind, and the latest that deleted one.
SELECT latest, deleted FROM kind_changes;
