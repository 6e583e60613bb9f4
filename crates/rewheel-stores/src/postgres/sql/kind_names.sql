-- kind_names: reads the names of all kinds.
SELECT name FROM rewheel.kinds ORDER BY name;
