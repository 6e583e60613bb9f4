-- kinds_since: kinds whose latest change is behind ?1. Contract: KindStore::kinds_since.
SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version
  FROM kinds INDEXED BY kinds_changed WHERE changed > ?1;
