-- kind_names: reads the names of all kinds.
SELECT name FROM rewheel_kinds ORDER BY name
