-- find_holder: the number of a holder, whether it lives, and the time. It cannot be buried before the transaction ends.
SELECT rewheel.now_ms() + $2, holders.seq, holders.died_ms IS NULL
  FROM (SELECT 1) AS one LEFT JOIN LATERAL
       (SELECT seq, died_ms FROM rewheel.holders WHERE id = $1 FOR KEY SHARE) AS holders ON true;
