-- kinds: reads every kind. Contract: KindStore::kinds.
SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version
  FROM rewheel.kinds ORDER BY name;
