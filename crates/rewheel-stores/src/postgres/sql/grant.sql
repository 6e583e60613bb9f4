-- grant: adds the earned retries of each kind to its budget, and grants as many of the wanted ones as the budget has. Computes the same
-- as RetryPool::grant. Contract: KindStore::grant.
-- $1 is the clock offset; $2 to $6 are the request for each kind, in the order of the kinds; $7 to $10 are RETRY, SAVED, MELTS_IN and
-- BALANCE_MAX.
WITH locked AS MATERIALIZED (
    SELECT budgets.kind, least(balance, $10) AS balance, counted_ms
      FROM rewheel.budgets WHERE kind = ANY ($2)
     ORDER BY kind                  -- two requests for the same kinds cannot deadlock
       FOR UPDATE
), timed AS MATERIALIZED (          -- read after the locks: the previous lock holder counted up to its own time
    SELECT locked.*, rewheel.now_ms() + $1 AS now, width_bucket(kind COLLATE "C", $2) AS nth FROM locked
), summed AS (
    SELECT kind, ($4)[nth] AS wanted, now, counted_ms,
           least($10, balance - greatest(balance - $8, 0) * elapsed / $9 + least(($3)[nth], $10) + elapsed * ($5)[nth] * $7 / ($6)[nth]) AS total
      FROM timed
     CROSS JOIN LATERAL (SELECT least(greatest(now - counted_ms, 0), $9) AS elapsed) AS since
), granted AS (
    SELECT kind, now, total, least(wanted, total / $7) AS granted FROM summed
)
UPDATE rewheel.budgets
   SET balance = granted.total - granted.granted * $7,
       counted_ms = CASE WHEN counted_ms > granted.now AND counted_ms - granted.now <= $9 THEN counted_ms ELSE granted.now END
  FROM granted WHERE budgets.kind = granted.kind
RETURNING budgets.kind, granted.granted;
