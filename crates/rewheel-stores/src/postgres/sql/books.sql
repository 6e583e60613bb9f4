-- books: counts all jobs and sums the ledger, in one snapshot. Contract: ReadStore::books.
SELECT coalesce((SELECT sum(submitted) FROM rewheel.ledger), 0)::bigint,
       (SELECT count(*) FROM rewheel.jobs), (SELECT count(*) FROM rewheel.dead), (SELECT count(*) FROM rewheel.finished),
       coalesce((SELECT sum(pruned) FROM rewheel.ledger), 0)::bigint;
