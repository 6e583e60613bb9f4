-- insert_forgotten: records what node $2 found missing after epoch $1 began. $3 is the clock offset; $4 are jobs that were submitted, $5
-- jobs that had ended, of $6 checked ones.
INSERT INTO rewheel.forgotten (epoch, node, at_ms, submitted, ended, checked)
VALUES ($1, $2, rewheel.now_ms() + $3, $4, $5, $6)
ON CONFLICT (epoch, node) DO UPDATE
   SET submitted = forgotten.submitted + excluded.submitted, ended = forgotten.ended + excluded.ended, checked = excluded.checked;
