-- sample: the latest sample. Contract: SampleStore::sample.
SELECT taken_ms, tallies FROM samples WHERE taken_ms IS NOT NULL;
