-- forgotten: adds up what nodes found missing in the last $2 milliseconds. $1 is the clock offset.
SELECT coalesce(sum(submitted), 0)::bigint, coalesce(sum(ended), 0)::bigint, count(DISTINCT node),
       coalesce(rewheel.now_ms() + $1 - max(at_ms), 0)
  FROM rewheel.forgotten WHERE at_ms > rewheel.now_ms() + $1 - $2;
