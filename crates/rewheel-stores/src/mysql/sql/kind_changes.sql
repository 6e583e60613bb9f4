-- kind_changes: reads the numbers of the latest change of a kind and of the latest change that deleted one.
SELECT latest, deleted FROM rewheel_kind_changes WHERE one = 1
