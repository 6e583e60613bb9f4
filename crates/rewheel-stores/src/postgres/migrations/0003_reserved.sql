-- 0003: room that holders have reserved under a tenant's job cap.
CREATE TABLE rewheel.reserved (
    tenant text    COLLATE "C" NOT NULL,
    holder integer NOT NULL,        -- holders.seq
    jobs   bigint  NOT NULL,
    PRIMARY KEY (tenant, holder)
);
CREATE INDEX lanes_tenant ON rewheel.lanes (tenant);      -- live jobs are counted lane by lane
CREATE INDEX jobs_paused ON rewheel.jobs (lane) WHERE shelf = 'paused';
