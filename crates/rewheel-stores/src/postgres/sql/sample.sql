-- sample: reads the latest cached counts and the time. $1 is the clock offset. Contract: SampleStore::sample.
SELECT rewheel.now_ms() + $1, taken_ms, tallies FROM rewheel.samples WHERE taken_ms IS NOT NULL;
