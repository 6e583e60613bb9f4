-- kind_names: reads the names of all kinds.
SELECT name FROM kinds ORDER BY name;
