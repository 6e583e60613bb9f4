-- 0002: what nodes counted per kind and minute. Each row is what one node counted in one minute, or what was merged from such rows.
CREATE TABLE IF NOT EXISTS rewheel_history (
    start_ms BIGINT     NOT NULL,
    reporter BINARY(16) NOT NULL,                                     -- the node; zeros for merged rows
    data     LONGBLOB   NOT NULL,                                     -- the counts of all kinds, as bytes that the store does not read
    PRIMARY KEY (start_ms, reporter)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
