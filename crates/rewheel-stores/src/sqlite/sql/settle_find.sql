-- settle_find: what settling a lease needs to know of its job. `+holder`: by id, whatever the statistics say.
SELECT seq, lane, wanted, attempt, key, takeovers, takeovers_counted
  FROM jobs WHERE id = ?1 AND state = 'leased' AND +holder = ?2 AND fence = ?3;
