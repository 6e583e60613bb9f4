-- wanted: what people want of the jobs of holder $1, at most $2.
SELECT id, fence, wanted FROM rewheel.jobs WHERE holder = $1 AND wanted IS NOT NULL LIMIT $2;
