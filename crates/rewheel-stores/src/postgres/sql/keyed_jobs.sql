-- keyed_jobs: reads the jobs that key $1 belongs to at $2: of kinds $3 and tenant $4, unless those are NULL. One index probe for each
-- kind and tenant, at most $5. The first column is the number of lanes found. Contract: ReadStore::list.
WITH named AS MATERIALIZED (
    SELECT DISTINCT kind, tenant
      FROM (SELECT kind, tenant FROM rewheel.lanes
             WHERE ($3::text[] IS NULL OR kind = ANY ($3)) AND ($4::text IS NULL OR tenant = $4) LIMIT $5) AS seen
), found AS (
    SELECT known.job FROM named,
           LATERAL (SELECT job FROM rewheel.keys
                     WHERE keys.kind = named.kind AND keys.tenant = named.tenant AND keys.key = $1
                       AND (expires_ms IS NULL OR expires_ms > $2) OFFSET 0) AS known
)
SELECT (SELECT count(*) FROM (SELECT FROM rewheel.lanes
                               WHERE ($3::text[] IS NULL OR kind = ANY ($3)) AND ($4::text IS NULL OR tenant = $4)
                               LIMIT $5) AS counted),
       ARRAY (SELECT job FROM found);
