-- books: counts all jobs and sums the ledger. Contract: ReadStore::books. One statement reads one snapshot.
SELECT COALESCE((SELECT CAST(SUM(submitted) AS SIGNED) FROM rewheel_ledger), 0),
       (SELECT COUNT(*) FROM rewheel_jobs), (SELECT COUNT(*) FROM rewheel_dead), (SELECT COUNT(*) FROM rewheel_finished),
       COALESCE((SELECT CAST(SUM(pruned) AS SIGNED) FROM rewheel_ledger), 0)
