-- index_names: reads the indexes of Rewheel's tables. Contract: Store::risks.
SELECT DISTINCT table_name, index_name FROM information_schema.statistics
 WHERE table_schema = DATABASE() AND table_name LIKE 'rewheel\_%' ORDER BY table_name, index_name
