-- find_kind_rows: reads the existing kinds among $1.
SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version, parked_until_ms, blocks_on_dead
  FROM rewheel.kinds WHERE name = ANY ($1::text[]);
