-- kinds_since: reads the kinds that changed after a change. Contract: KindStore::kinds_since.
SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version, parked_until_ms, blocks_on_dead
  FROM rewheel_kinds FORCE INDEX (changed) WHERE changed > ?
