-- sample: reads the latest cached counts. Contract: SampleStore::sample.
SELECT taken_ms, tallies FROM rewheel_samples WHERE one = 1 AND taken_ms IS NOT NULL
