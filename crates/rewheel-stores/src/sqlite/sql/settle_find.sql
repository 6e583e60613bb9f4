-- settle_find: reads the columns needed to settle the jobs among ?1 that holder ?2 has. `+holder`: looks them up by id, whatever the
-- statistics say.
SELECT id, fence, seq, lane, wanted, attempt, key, takeovers, takeovers_counted, group_key
  FROM jobs WHERE id IN rarray(?1) AND state = 'leased' AND +holder = ?2;
