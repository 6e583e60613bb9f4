-- find_holder: reads the number of a holder that is alive, and the latest epoch. The lock keeps others from marking the holder as dead until
-- this transaction ends. Heartbeats do not wait for it: they have their own table.
SELECT seq, (SELECT MAX(epoch) FROM rewheel_epochs) FROM rewheel_holders WHERE id = ? AND died_ms IS NULL LOCK IN SHARE MODE;
