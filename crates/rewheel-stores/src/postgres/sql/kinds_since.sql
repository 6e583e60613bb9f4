-- kinds_since: what to ask with next, whether a kind was deleted since $1 or $1 is not of this server, and the kinds that changed.
-- Contract: KindStore::kinds_since.
SELECT head.at, head.whole, name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced,
       version
  FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS at,
               $1 <= 0 OR deleted >= $1 OR $1 > pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS whole
          FROM rewheel.kind_changes OFFSET 0) AS head
  LEFT JOIN LATERAL (SELECT * FROM rewheel.kinds WHERE changed >= $1 AND NOT head.whole OFFSET 0) AS kind ON true;
