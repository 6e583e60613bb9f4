-- prepare_floor: creates the table with the largest token of all rows that were deleted.
CREATE TABLE IF NOT EXISTS rewheel_lock_floor (
    one   TINYINT NOT NULL PRIMARY KEY,
    token BIGINT  NOT NULL
) ENGINE = InnoDB
