-- ledger_sum: the oldest ?1 lines of the ledger, added up.
SELECT count(*), max(seq), sum(submitted), sum(pruned) FROM (SELECT * FROM ledger ORDER BY seq LIMIT ?1);
