-- count_dropped: adds to the number of records that were dropped before a record.
UPDATE rewheel_attempts SET dropped = dropped + ? WHERE seq = ?;
