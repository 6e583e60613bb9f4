-- count_lanes: counts lanes, of kind ?1 and tenant ?2 unless those are NULL, up to 50001.
SELECT count(*) FROM (SELECT 1 FROM lanes WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR tenant = ?2) LIMIT 50001);
