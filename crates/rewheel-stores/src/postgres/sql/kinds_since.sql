-- kinds_since: reads the kinds that changed since $1, the position for the next call, and whether all kinds must be read because one was
-- deleted since or $1 is from another server. Contract: KindStore::kinds_since.
SELECT head.at, head.whole, name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced,
       version, parked_until_ms, blocks_on_dead
  FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS at,
               $1 <= 0 OR deleted >= $1 OR $1 > pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS whole
          FROM rewheel.kind_changes OFFSET 0) AS head
  LEFT JOIN LATERAL (SELECT * FROM rewheel.kinds WHERE changed >= $1 AND NOT head.whole OFFSET 0) AS kind ON true;
