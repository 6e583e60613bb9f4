-- find_holder: reads a holder's number, whether it is alive, its name, and the time. It cannot be expired before the transaction ends.
SELECT rewheel.now_ms() + $2, holders.seq, holders.died_ms IS NULL, holders.name
  FROM (SELECT 1) AS one LEFT JOIN LATERAL
       (SELECT seq, died_ms, name FROM rewheel.holders WHERE id = $1 FOR KEY SHARE) AS holders ON true;
