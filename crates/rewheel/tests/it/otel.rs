//! Tests of the OpenTelemetry spans and metrics of calls.

#![expect(clippy::unwrap_used, reason = "test code")]

#[cfg(feature = "axum")]
mod passing;

use opentelemetry::Value;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{SpanKind, TracerProvider as _};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use rewheel::otel::{Meter, Metrics, TARGET};
use rewheel::{
    AdaptiveLimit, Bulkhead, CircuitBreaker, ClientThrottle, Event, Failover, Hedge, LastGood,
    ManualClock, Observer, OutlierEjection, Pipeline, RateLimiter, Retry, Retryable, SafeToRepeat,
    millis, seconds,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

/// Runs `work` with a subscriber, and returns the spans, the earliest first.
fn spans(work: impl FnOnce()) -> Vec<SpanData> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let filter = Targets::new().with_target(TARGET, LevelFilter::TRACE);
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    tracing::subscriber::with_default(subscriber, work);
    provider.force_flush().unwrap();
    let mut spans = exporter.get_finished_spans().unwrap();
    spans.sort_by_key(|span| span.start_time);
    spans
}

fn attributes(span: &SpanData) -> BTreeMap<&str, String> {
    let text = |value: &Value| match value {
        Value::Bool(flag) => format!("{flag}"),
        Value::I64(number) => format!("{number}"),
        Value::String(text) => format!("'{text}'"),
        Value::F64(_) | Value::Array(_) | _ => format!("{value:?}"),
    };
    let all = span.attributes.iter();
    all.map(|attribute| (attribute.key.as_str(), text(&attribute.value))).collect()
}

#[track_caller]
fn assert_said(span: &SpanData, expected: &[(&str, &str)]) {
    let said = attributes(span);
    for (name, value) in expected {
        assert_eq!(said.get(name).map(String::as_str), Some(*value), "{name} of {said:?}");
    }
}

/// Fails `times` times, then succeeds.
fn failing(times: u32) -> impl FnMut() -> io::Result<u32> {
    let count = Cell::new(0);
    move || {
        count.set(count.get() + 1);
        if count.get() > times { Ok(7) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}

#[track_caller]
fn check_retried(spans: &[SpanData], name: &str) {
    let [call, first, second] = spans else { panic!("{spans:?}") };
    assert_eq!(call.name, name);
    let expected = [
        ("retry.max_attempts", "3"),
        ("retry.current_attempt", "2"),
        ("retry.final_attempt", "2"),
        ("retry.total_delay_ms", "250"),
        ("retry.success", "true"),
    ];
    assert_said(call, &expected);
    assert!(!attributes(call).contains_key("retry.failure_reason"));
    assert_eq!(call.span_kind, SpanKind::Internal);
    for attempt in [first, second] {
        assert_eq!(attempt.span_kind, SpanKind::Client);
        assert_eq!(
            (&*attempt.name, attempt.parent_span_id),
            ("attempt", call.span_context.span_id())
        );
    }
    let failed = [
        ("retry.current_attempt", "1"),
        ("retry.error_classification", "'timeout'"),
        ("error.type", "'timeout'"),
    ];
    assert_said(first, &failed);
    assert_said(second, &[("retry.current_attempt", "2")]);
    assert!(!attributes(second).contains_key("error.type"));
    let [wait] = &call.events.events[..] else { panic!("{call:?}") };
    assert_eq!(wait.name, "retry.backoff");
    let delay = wait.attributes.iter().find(|said| said.key.as_str() == "retry.delay_ms");
    assert_eq!(delay.map(|said| said.value.clone()), Some(Value::I64(250)));
    assert!(first.end_time <= wait.timestamp && wait.timestamp <= second.start_time);
}

const POLICY: Retry = Retry::fixed(millis(250)).attempts_max(3);

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn a_call_is_a_span_with_one_below_it_for_each_attempt() {
    let clock = ManualClock::new();
    let spans = spans(|| {
        let mut operation = failing(1);
        let call = (|| std::future::ready(operation())).retry(POLICY).clock(&clock);
        assert_eq!(block_on(clock.drive(call.traced("fetch"))).unwrap(), 7);
    });
    check_retried(&spans, "fetch");
}

#[test]
fn a_blocking_call_looks_the_same() {
    let clock = ManualClock::new();
    let spans = spans(|| {
        let call = failing(1).retry(POLICY).clock(&clock);
        assert_eq!(call.call_traced("fetch").unwrap(), 7);
    });
    check_retried(&spans, "fetch");
}

#[test]
fn so_does_a_pipeline() {
    let clock = ManualClock::new();
    let spans = spans(|| {
        let mut operation = failing(1);
        let pipeline = Pipeline::new().named("charge").clock(&clock).retry(POLICY);
        let run = pipeline.run_traced(|_| std::future::ready(operation()));
        assert_eq!(block_on(clock.drive(run)).unwrap(), 7);
    });
    check_retried(&spans, "charge");
}

#[test]
fn a_call_that_is_given_up_says_why() {
    let clock = ManualClock::new();
    let spans = spans(|| {
        let call = failing(9).retry(POLICY).clock(&clock);
        assert!(call.call_traced("fetch").is_err());
    });
    assert_eq!(spans.len(), 4);
    let expected = [
        ("retry.success", "false"),
        ("retry.final_attempt", "3"),
        ("retry.total_delay_ms", "500"),
        ("retry.failure_reason", "'attempts_exhausted'"),
        ("retry.error_classification", "'timeout'"),
        ("retry.last_error", "'timed out'"),
    ];
    assert_said(&spans[0], &expected);
    assert!(matches!(spans[0].status, opentelemetry::trace::Status::Error { .. }));
}

#[test]
fn without_a_subscriber_a_call_is_as_it_was() {
    let clock = ManualClock::new();
    assert_eq!(failing(1).retry(POLICY).clock(&clock).call_traced("fetch").unwrap(), 7);
}

/// Returns the values of each metric, summed over all labels.
fn metrics(work: impl FnOnce(&opentelemetry::metrics::Meter)) -> BTreeMap<String, (String, f64)> {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder().with_periodic_exporter(exporter.clone()).build();
    work(&provider.meter("test"));
    provider.force_flush().unwrap();
    let finished = exporter.get_finished_metrics().unwrap();
    let scopes = finished.last().unwrap().scope_metrics();
    let all = scopes.flat_map(|scope| scope.metrics());
    all.map(|metric| (metric.name().to_owned(), (metric.unit().to_owned(), sum(metric)))).collect()
}

fn sum(metric: &Metric) -> f64 {
    let AggregatedMetrics::U64(data) = metric.data() else {
        let AggregatedMetrics::F64(MetricData::Histogram(read)) = metric.data() else {
            panic!("{metric:?}")
        };
        return read.data_points().map(|point| point.sum()).sum();
    };
    match data {
        MetricData::Sum(sum) => sum.data_points().map(|point| point.value() as f64).sum(),
        MetricData::Gauge(gauge) => gauge.data_points().map(|point| point.value() as f64).sum(),
        MetricData::Histogram(read) => read.data_points().map(|point| point.sum() as f64).sum(),
        MetricData::ExponentialHistogram(_) => panic!("{metric:?}"),
    }
}

#[test]
fn the_state_of_a_breaker_is_reported_before_its_first_change() {
    let heard = metrics(|meter| {
        let counted = Metrics::new(meter);
        let builder = CircuitBreaker::consecutive(1).named("bank").observer(counted);
        builder.clone().build();
        builder.named("of a key").keyed::<u32>(9).get(&7);
    });
    assert_eq!(heard.get("circuit_breaker.state").map(|(_, value)| *value), Some(0.0), "{heard:?}");
    assert_eq!(heard.len(), 1, "{heard:?}");
}

#[test]
fn the_state_of_one_key_is_not_the_state_of_the_set() {
    let heard = metrics(|meter| {
        let per_host = CircuitBreaker::consecutive(1).named("hosts").observer(Metrics::new(meter));
        let per_host = per_host.keyed::<u32>(9);
        per_host.get(&1).force_open();
        per_host.get(&2).force_open();
        per_host.get(&2).reset();
    });
    assert!(!heard.contains_key("circuit_breaker.state"), "{heard:?}");
    assert_eq!(heard["circuit_breaker.transitions"].1, 3.0);
}

/// Holds the first event of a kind back until it is told to go on.
#[derive(Debug)]
struct Late {
    metrics: Arc<Metrics>,
    is_held: fn(&Event<'_>) -> bool,
    /// Told when the event is held, and waited for until it may go on.
    held: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Observer for Late {
    fn observe(&self, event: &Event<'_>) {
        if (self.is_held)(event) {
            // The lock is free again while it waits.
            let held = self.held.lock().unwrap().take();
            if let Some((held, go_on)) = held {
                held.send(()).unwrap();
                go_on.recv().unwrap();
            }
        }
        self.metrics.observe(event);
    }
}

/// Makes two changes in two threads, of which the first is reported last. Returns what the gauge says in the end.
fn reported_late(
    gauge: &str,
    is_held: fn(&Event<'_>) -> bool,
    work: impl FnOnce(Arc<Late>) -> [Box<dyn FnOnce() + Send>; 2],
) -> f64 {
    let heard = metrics(|meter| {
        let (tell_held, held) = channel();
        let (go_on, may_go_on) = channel();
        let metrics = Metrics::new(meter);
        let late = Late { metrics, is_held, held: Mutex::new(Some((tell_held, may_go_on))) };
        let [first, second] = work(Arc::new(late));
        let thread = std::thread::spawn(first);
        held.recv().unwrap();
        second();
        go_on.send(()).unwrap();
        thread.join().unwrap();
    });
    heard[gauge].1
}

fn one_of_two() -> (AdaptiveLimit, ManualClock) {
    let clock = ManualClock::new();
    (AdaptiveLimit::between(1, 2).initial(2).clock(&clock).build(), clock)
}

fn call(limit: &AdaptiveLimit, clock: &ManualClock, failed: bool) {
    let permit = limit.try_acquire().unwrap();
    clock.advance(millis(20));
    if failed { permit.failure() } else { permit.success() }
}

#[test]
fn a_change_that_is_reported_late_does_not_hide_a_later_one() {
    let opens = |event: &Event<'_>| matches!(event, Event::BreakerChanged { .. });
    let state = reported_late("circuit_breaker.state", opens, |observer| {
        let breaker = CircuitBreaker::consecutive(1).named("bank").observer(observer).build();
        let same = breaker.clone();
        [Box::new(move || breaker.force_open()), Box::new(move || same.reset())]
    });
    assert_eq!(state, 0.0, "the breaker is closed");

    let grows =
        |event: &Event<'_>| matches!(event, Event::LimitChanged { from, to, .. } if from != to);
    let limit = reported_late("adaptive_limit.limit", grows, |observer| {
        // The same calls lead to the same decisions.
        let (fails, unobserved) = one_of_two();
        let count = (1..).find(|_| {
            call(&fails, &unobserved, true);
            fails.limit() == 1
        });
        let clock = ManualClock::new();
        let limit = AdaptiveLimit::between(1, 2).initial(2).named("bank").observer(observer);
        let limit = limit.clock(&clock).build();
        let (same, later) = (limit.clone(), clock.clone());
        let first = move || (0..count.unwrap()).for_each(|_| call(&limit, &clock, true));
        let second = move || {
            while same.limit() == 1 {
                call(&same, &later, false);
            }
        };
        [Box::new(first), Box::new(second)]
    });
    assert_eq!(limit, 2.0);
}

#[test]
fn a_prefix_is_put_before_each_name() {
    let heard = metrics(|meter| {
        let metrics = Metrics::with_prefix(meter, "shop.");
        failing(0).retry(POLICY).observer("fetch", metrics.clone()).call().unwrap();
        CircuitBreaker::consecutive(1).named("bank").observer(metrics).build();
    });
    assert!(heard.keys().all(|name| name.starts_with("shop.")), "{heard:?}");
    assert!(heard.contains_key("shop.retry.attempts"), "{heard:?}");
    assert!(heard.contains_key("shop.circuit_breaker.state"), "{heard:?}");
}

/// Policies that get a result from elsewhere: a second attempt, a fallback, a cache, another target.
fn other_sources(clock: &ManualClock, counted: &std::sync::Arc<Metrics>) {
    let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
    let hedge = Hedge::after(millis(1)).clock(clock).named("bank").observer(counted.clone());
    let hedge = hedge.build();
    let mut waits = [seconds(9), seconds(1)].into_iter();
    let slow = || {
        let (clock, wait) = (rewheel::Clock::from(clock), waits.next().unwrap());
        async move {
            clock.sleep(wait).await;
            Ok::<_, io::Error>(1)
        }
    };
    block_on(clock.drive(hedge.call(SafeToRepeat, slow))).unwrap();
    let fails = || Err::<u32, _>(timed_out());
    let read =
        || fails.retry(POLICY.attempts_max(1)).clock(clock).observer("fetch", counted.clone());
    assert!(read().call_or_value(1).is_ok());
    assert!(read().call_or_call(|_| Err(timed_out())).is_err());
    let cache = LastGood::ttl(seconds(9)).named("bank").observer(counted.clone()).build();
    for _ in 0..2 {
        cache.get_or_call_blocking(&1, || Ok::<_, io::Error>(1)).unwrap();
    }
    let failover = Failover::over(["a", "b"]).clock(clock).named("bank").observer(counted.clone());
    let rules = OutlierEjection::margin(0.3).calls_min(1);
    let failover = failover.ejection(rules).build();
    for _ in 0..2 {
        let call = |target: &&str| if *target == "a" { Err(timed_out()) } else { Ok(1) };
        failover.call_blocking(call).unwrap();
    }
}

/// Makes calls that fail until one is rejected.
fn reject_by_throttle(counted: std::sync::Arc<Metrics>) {
    let throttle = ClientThrottle::accepts_times(1.0).floor_per_second(0).named("bank");
    let throttle = throttle.observer(counted).build();
    while let Ok(permit) = throttle.acquire() {
        permit.rejected();
    }
}

#[test]
fn policies_are_counted_under_their_names_and_units() {
    let clock = ManualClock::new();
    let heard = metrics(|meter| {
        let counted = Metrics::new(meter);
        let call = |times| failing(times).retry(POLICY).clock(&clock);
        assert!(call(1).observer("fetch", counted.clone()).call().is_ok());
        assert!(call(9).observer("fetch", counted.clone()).call().is_err());
        let breaker = CircuitBreaker::consecutive(1).named("bank").observer(counted.clone());
        let breaker = breaker.clock(&clock).build();
        breaker.acquire().unwrap().record(&Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)));
        assert!(breaker.acquire().is_err());
        let limiter = RateLimiter::per_second(1).named("bank").observer(counted.clone());
        let limiter = limiter.clock(&clock).wait_max(seconds(9)).build();
        assert!(limiter.check().is_ok() && limiter.check().is_err());
        block_on(clock.drive(limiter.acquire())).unwrap();
        let keyed = RateLimiter::per_second(1).named("each").observer(counted.clone());
        assert!(keyed.clock(&clock).keyed::<u32>(9).check(&7).is_ok());
        let bulkhead = Bulkhead::concurrency(1).named("bank").observer(counted.clone()).build();
        let _place = bulkhead.try_acquire().unwrap();
        assert!(bulkhead.try_acquire().is_err());
        other_sources(&clock, &counted);
        let limit = AdaptiveLimit::between(1, 9).named("bank").observer(counted.clone()).build();
        let _permit = limit.try_acquire().unwrap();
        assert!(limit.try_acquire().is_err());
        reject_by_throttle(counted.clone());
        counted.observe(&Event::ChaosInjected { name: "bank", fault: "hang" });
    });
    let expected = [
        ("retry.attempts", 7.0),
        ("retry.successes", 1.0),
        ("retry.failures", 3.0),
        ("retry.backoff_duration", 0.75),
        ("retry.final_attempt", 7.0),
        ("circuit_breaker.state", 1.0),
        ("circuit_breaker.transitions", 1.0),
        ("circuit_breaker.rejections", 1.0),
        ("rate_limit.allowed", 3.0),
        ("rate_limit.rejected", 1.0),
        ("bulkhead.rejected", 1.0),
        ("adaptive_limit.limit", 1.0),
        ("adaptive_limit.rejected", 1.0),
        ("client_throttle.rejected", 1.0),
        ("chaos.injected", 1.0),
        ("request.duration", 0.75),
        ("queue.wait_time", 1.0),
        ("hedge.started", 1.0),
        ("hedge.won", 1.0),
        ("fallback.used", 2.0),
        ("fallback.failed", 1.0),
        ("last_good.served", 2.0),
        ("failover.switches", 2.0),
        ("failover.ejections", 1.0),
    ];
    for (name, value) in expected {
        assert_eq!(heard.get(name).map(|(_, value)| *value), Some(value), "{name} of {heard:?}");
    }
    let units: Vec<_> =
        heard.iter().map(|(name, (unit, _))| (name.as_str(), unit.as_str())).collect();
    let mut told: Vec<_> = Meter::ALL.iter().map(|meter| (meter.name, meter.unit)).collect();
    told.sort_unstable();
    assert_eq!(units, told);
}
