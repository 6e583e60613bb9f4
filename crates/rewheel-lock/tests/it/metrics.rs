//! Tests that the metrics count what happens.

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use rewheel_lock::{LockMetrics, Locks};
use std::collections::BTreeMap;

#[tokio::test]
async fn requests_and_held_locks_are_counted_by_outcome() {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder().with_periodic_exporter(exporter.clone()).build();
    let locks = Locks::memory().observer(LockMetrics::new(&provider.meter("test")));
    let guard = locks.try_lock("a").await.unwrap();
    let other = tokio::task::JoinSet::from_iter([{
        let locks = locks.clone();
        async move { locks.try_lock("a").await.is_err() }
    }]);
    assert_eq!(other.join_all().await, [true]);
    guard.release().await.unwrap();
    provider.force_flush().unwrap();

    let mut counts = BTreeMap::new();
    let exported = exporter.get_finished_metrics().unwrap();
    for metric in
        exported.iter().flat_map(|all| all.scope_metrics()).flat_map(|scope| scope.metrics())
    {
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
            continue;
        };
        for point in histogram.data_points() {
            let labels: Vec<String> =
                point.attributes().map(|label| format!("{}={}", label.key, label.value)).collect();
            counts.insert(format!("{} {}", metric.name(), labels.join(",")), point.count());
        }
    }
    let expected = [
        ("lock.held_time end=released", 1),
        ("lock.wait_time outcome=acquired", 1),
        ("lock.wait_time outcome=busy", 1),
    ];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_owned(), count)).into());
}
