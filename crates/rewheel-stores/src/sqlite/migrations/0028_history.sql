-- 0028: what nodes counted per kind and minute. Each row is what one node counted in one minute, or what was merged from such rows.
CREATE TABLE history (
    start_ms INTEGER NOT NULL,
    reporter BLOB    NOT NULL,   -- the node; zeros for merged rows
    data     BLOB    NOT NULL,   -- the counts of all kinds, as bytes that the store does not read
    PRIMARY KEY (start_ms, reporter)
) STRICT;
