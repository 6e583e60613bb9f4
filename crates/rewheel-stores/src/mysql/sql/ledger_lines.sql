-- ledger_lines: finds and locks the oldest lines of the ledger, if it has more than a number. Concurrent calls find different lines.
SELECT seq, submitted, pruned FROM rewheel_ledger ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED
