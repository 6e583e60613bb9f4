-- find_kind_rows: those of the kinds $1 that exist.
SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version
  FROM rewheel.kinds WHERE name = ANY ($1::text[]);
