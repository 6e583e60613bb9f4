-- find_replaced: reads the jobs that wait to be claimed for the first time and have the keys of follow-ups ($1 to $4: parent, kind, tenant,
-- key). A follow-up has the tenant of its parent; one of the engine's own jobs submits jobs of any tenant.
SELECT known.job
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS given (parent, kind, tenant, key),
       LATERAL (SELECT jobs.lane FROM rewheel.jobs WHERE jobs.id = given.parent OFFSET 0) AS parent,
       LATERAL (SELECT CASE WHEN left(lanes.kind, 8) = 'rewheel' || '.' THEN given.tenant ELSE lanes.tenant END AS tenant
                  FROM rewheel.lanes WHERE lanes.lane = parent.lane OFFSET 0) AS named,
       LATERAL (SELECT keys.job FROM rewheel.keys
                 WHERE keys.kind = given.kind AND keys.tenant = named.tenant AND keys.key = given.key OFFSET 0) AS known
 WHERE (SELECT 1 FROM rewheel.jobs WHERE jobs.id = known.job AND jobs.fence = 0) IS NOT NULL;
