-- count_lanes: counts lanes, of a kind and a tenant unless those are NULL, up to one more than a search for a key may look at.
SELECT COUNT(*) FROM (SELECT 1 FROM rewheel_lanes WHERE (? IS NULL OR kind = ?) AND (? IS NULL OR tenant = ?) LIMIT 50001) AS counted;
