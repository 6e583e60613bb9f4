-- see_holder: reads the number of a holder that is alive, and the latest epoch, without a lock: a user's transaction may stay open for
-- long, and the holder must be able to expire meanwhile. The fence of each job decides what the holder may write.
SELECT seq, (SELECT MAX(epoch) FROM rewheel_epochs) FROM rewheel_holders WHERE id = ? AND died_ms IS NULL;
