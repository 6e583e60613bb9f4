-- books: counts all jobs and sums the ledger, in one snapshot. Contract: ReadStore::books.
SELECT coalesce((SELECT sum(submitted) FROM ledger), 0),
       (SELECT count(*) FROM jobs), (SELECT count(*) FROM dead), (SELECT count(*) FROM finished),
       coalesce((SELECT sum(pruned) FROM ledger), 0);
