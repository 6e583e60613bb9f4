-- shelve: takes at most $4 lists of claims away that are $1 old or older, or whose holder is not alive; only those of
-- holder $2, if one is named. What they list and is still leased goes on the shelf `held`, in the order of ids as
-- everybody locks. Whoever changes a job meanwhile puts it on its shelf, so that passing it over is right. $3 moves the clock.
WITH old AS MATERIALIZED (
    SELECT claims.seq, claims.holder, jobs FROM rewheel.claims
     WHERE (at_ms <= rewheel.now_ms() + $3 - $1
            OR NOT EXISTS (SELECT FROM rewheel.holders WHERE holders.seq = claims.holder AND died_ms IS NULL))
       AND ($2::uuid IS NULL OR claims.holder = (SELECT holders.seq FROM rewheel.holders WHERE holders.id = $2))
     ORDER BY claims.seq LIMIT $4 FOR UPDATE SKIP LOCKED
),
moved AS (
    UPDATE rewheel.jobs SET shelf = 'held', held_by = jobs.holder, held_until_ms = overdue_ms
      FROM (SELECT id, old.holder FROM old, unnest(old.jobs) AS id ORDER BY id OFFSET 0) AS listed,
           LATERAL (SELECT jobs.ctid AS place FROM rewheel.jobs WHERE jobs.id = listed.id OFFSET 0) AS found
     WHERE jobs.ctid = found.place AND shelf IS NOT DISTINCT FROM 'due'      -- not `=`: nothing is looked for but the place
       AND state = 'leased' AND jobs.holder IS NOT DISTINCT FROM listed.holder
),
gone AS (DELETE FROM rewheel.claims USING old WHERE claims.seq = old.seq)
SELECT count(*) FROM old;
