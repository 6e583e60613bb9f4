-- cancel_dead: cancels dead letters $1, now $2, kept until $3.
WITH gone AS (DELETE FROM rewheel.dead WHERE id = ANY ($1::uuid[]) RETURNING dead.*)
INSERT INTO rewheel.finished_bins ({moved}, bin, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                                   takeovers_counted, settled_by, settled_fence, deadline_ms, failure_category, failure_code,
                                   failure_message, ended_ms, expires_ms)
SELECT {moved}, 0, 'cancelled', due_ms, because, fence, version + 1, attempt, attempts_before, takeovers,
       takeovers_counted, settled_by, settled_fence, deadline_ms, failure_category, failure_code,
       failure_message, $2, $3
  FROM gone;
