-- count_lanes: how many lanes there are, of kind ?1 and tenant ?2 where those are not NULL; no more than 50001 are counted.
SELECT count(*) FROM (SELECT 1 FROM lanes WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR tenant = ?2) LIMIT 50001);
