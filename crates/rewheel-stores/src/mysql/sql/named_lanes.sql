-- named_lanes: reads the kinds and tenants of lanes, at most one more than a search for a key may look at.
SELECT DISTINCT kind, tenant FROM rewheel_lanes WHERE (? IS NULL OR kind = ?) AND (? IS NULL OR tenant = ?) LIMIT ?;
