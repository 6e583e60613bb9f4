-- ledger_sum: adds up the oldest ?1 lines of the ledger, if it has more than ?2.
SELECT count(*), max(seq), sum(submitted), sum(pruned) FROM (SELECT * FROM ledger ORDER BY seq LIMIT ?1)
 WHERE EXISTS (SELECT 1 FROM ledger LIMIT 1 OFFSET ?2);
