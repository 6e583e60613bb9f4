-- lock_kinds: locks the existing kinds among $1, in the given order.
SELECT kind.* FROM unnest($1::text[]) AS given (name),
       LATERAL (SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version, parked_until_ms, blocks_on_dead
                  FROM rewheel.kinds WHERE kinds.name = given.name FOR UPDATE) AS kind;
