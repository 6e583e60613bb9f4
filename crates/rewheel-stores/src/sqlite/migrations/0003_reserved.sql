-- 0003: room that holders have set aside for jobs of a tenant that may have so many and no more.
CREATE TABLE reserved (
    tenant TEXT    NOT NULL,
    holder INTEGER NOT NULL,        -- holders.seq
    jobs   INTEGER NOT NULL,
    PRIMARY KEY (tenant, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_tenant ON lanes (tenant);      -- its live jobs are counted lane by lane
