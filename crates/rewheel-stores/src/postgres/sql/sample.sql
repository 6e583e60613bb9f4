-- sample: the latest sample and the time. $1 moves the clock. Contract: SampleStore::sample.
SELECT rewheel.now_ms() + $1, taken_ms, tallies FROM rewheel.samples WHERE taken_ms IS NOT NULL;
