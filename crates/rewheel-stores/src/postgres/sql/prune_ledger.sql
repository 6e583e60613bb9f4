-- prune_ledger: adds up the oldest $1 lines of the ledger into one, if it has more than $2. Concurrent calls add up different lines.
WITH found AS MATERIALIZED (
    SELECT ledger.ctid AS place FROM rewheel.ledger
     WHERE EXISTS (SELECT FROM rewheel.ledger OFFSET $2 LIMIT 1)
     ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM rewheel.ledger USING found
     WHERE ledger.ctid = found.place AND (SELECT count(*) FROM found) > 1 RETURNING seq, at_ms, submitted, pruned
),
line AS (
    INSERT INTO rewheel.ledger (at_ms, submitted, pruned)
    SELECT max(at_ms), sum(submitted), sum(pruned) FROM gone HAVING count(*) > 1
)
SELECT count(*) FROM gone;
