-- find_keys: who has these keys, as far as they have not expired at $1.
SELECT given.nth, keys.job, keys.payload_hash, keys.state
  FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS given (kind, tenant, key, nth)
  JOIN rewheel.keys USING (kind, tenant, key)
 WHERE expires_ms IS NULL OR expires_ms > $1;
