-- sample: reads the latest cached counts. Contract: SampleStore::sample.
SELECT taken_ms, tallies FROM samples WHERE taken_ms IS NOT NULL;
