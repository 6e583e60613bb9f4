-- 0003: room that holders have reserved under a tenant's job cap.
CREATE TABLE reserved (
    tenant TEXT    NOT NULL,
    holder INTEGER NOT NULL,        -- holders.seq
    jobs   INTEGER NOT NULL,
    PRIMARY KEY (tenant, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_tenant ON lanes (tenant);      -- live jobs are counted lane by lane
