-- unreported: returns a number that changes when another process changes jobs. Contract: Store::unreported_changes.
SELECT CAST(COALESCE(SUM(seq), 0) MOD 9223372036854775807 AS SIGNED) FROM rewheel_ledger WHERE writer <> ?;
