-- aside_anew: as aside, for a job that needs another place: the one that it has was taken.
UPDATE rewheel_jobs FORCE INDEX (id) SET lane = -lane, place = ? WHERE id = ? AND lane > 0 AND state = 1;
