-- settle_find: what settling needs to know of the jobs ?1 that holder ?2 has. `+holder`: by id, whatever the statistics say.
SELECT id, fence, seq, lane, wanted, attempt, key, takeovers, takeovers_counted
  FROM jobs WHERE id IN rarray(?1) AND state = 'leased' AND +holder = ?2;
