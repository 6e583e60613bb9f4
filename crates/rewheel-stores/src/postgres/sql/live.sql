-- live: reads the live jobs among $1. Contract: ReadStore::live.
SELECT {live_job_without_payload} FROM rewheel.jobs WHERE id = ANY ($1);
