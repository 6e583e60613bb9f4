//! Tests what an OpenTelemetry collector receives.

mod collector;
mod served;

use self::collector::{Collector, Received, Value};
use self::served::{Served, config, serve};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use rewheel_engine::meters::{METERS, MeterType};
use std::collections::BTreeMap;

/// The span of the submitting client.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(span: &Span) -> BTreeMap<String, Value> {
    collector::attributes(&span.attributes)
}

/// Runs one job that fails once, and records what its callee and the collector receive.
async fn one_job(collector: &Collector, protocol: &str) -> (Served, Received) {
    let telemetry =
        format!("otlp = \"{}\"\nprotocol = \"{protocol}\"\ninterval = \"1s\"", collector.url);
    let mut served = serve(&config(&telemetry), &[]).await;
    served.submit(Some(&format!("00-{TRACE}-{PARENT}-01"))).await;
    served.until_succeeded().await;
    assert!(served.node.terminate().await.success(), "{:?}", served.node.said());
    (served, collector.received())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_a_submit_and_attempts_that_link_to_it_and_go_on_in_the_callee() {
    let collector = Collector::http().await;
    let (served, received) = one_job(&collector, "http").await;
    assert_eq!(received.services(), ["rewheel"]);
    let [submit] = received.named("submit charge-card")[..] else { panic!("{received:?}") };
    assert_eq!(
        (hex(&submit.trace_id), hex(&submit.parent_span_id)),
        (TRACE.to_owned(), PARENT.to_owned())
    );
    assert_eq!(submit.kind, SpanKind::Producer as i32);
    let said = attributes(submit);
    assert_eq!(said["messaging.destination.name"], Value::Text("charge-card".to_owned()));
    assert_eq!(said["messaging.message.id"], Value::Text(served.job.clone()));

    let attempts = received.named("attempt charge-card");
    assert_eq!(attempts.len(), 2, "{received:?}");
    for (number, attempt) in (1..).zip(&attempts) {
        assert!(attempt.parent_span_id.is_empty() && attempt.trace_id != submit.trace_id);
        let [link] = &attempt.links[..] else { panic!("{attempt:?}") };
        assert_eq!((&link.trace_id, &link.span_id), (&submit.trace_id, &submit.span_id));
        assert_eq!(attempt.kind, SpanKind::Consumer as i32);
        let said = attributes(attempt);
        assert_eq!(said["messaging.message.id"], Value::Text(served.job.clone()));
        assert_eq!(said["retry.current_attempt"], Value::Number(number));
        assert_eq!(said["retry.max_attempts"], Value::Number(3));
        assert_eq!(said["retry.success"], Value::Flag(number == 2));
    }
    let (failed, done) = (attributes(attempts[0]), attributes(attempts[1]));
    assert_eq!(failed["rewheel.decision"], Value::Text("retry".to_owned()));
    assert_eq!(failed["rewheel.delay_ms"], Value::Number(50));
    assert_eq!(failed["retry.error_classification"], Value::Text("transient".to_owned()));
    assert_eq!(failed["error.type"], Value::Text("503".to_owned()));
    assert_eq!(attempts[0].status.as_ref().map(|status| status.code), Some(2));
    assert_eq!(done["rewheel.decision"], Value::Text("succeed".to_owned()));
    assert!(!done.contains_key("error.type") && !done.contains_key("retry.last_error"));
    check_calls(&served, &received, &attempts);
}

/// Checks the spans of the calls against the conventions for HTTP clients; the callee received the same span ids.
#[track_caller]
fn check_calls(served: &Served, received: &Received, attempts: &[&Span]) {
    let calls = received.named("POST");
    let heard = served.callee.heard();
    assert_eq!((calls.len(), heard.len()), (2, 2), "{received:?}");
    for (((number, call), attempt), heard) in (0..).zip(&calls).zip(attempts).zip(&heard) {
        assert_eq!(call.kind, SpanKind::Client as i32);
        assert_eq!((&call.trace_id, &call.parent_span_id), (&attempt.trace_id, &attempt.span_id));
        assert_eq!(*heard, format!("00-{}-{}-01", hex(&call.trace_id), hex(&call.span_id)));
        let said = attributes(call);
        let port = served.callee.address.port();
        let expected = [
            ("http.request.method", Value::Text("POST".to_owned())),
            ("url.full", Value::Text(format!("http://127.0.0.1:{port}/hook?REDACTED"))),
            ("server.address", Value::Text("127.0.0.1".to_owned())),
            ("server.port", Value::Number(i64::from(port))),
        ];
        for (name, value) in expected {
            assert_eq!(said[name], value, "{name}");
        }
        let status = if number == 0 { 503 } else { 200 };
        assert_eq!(said["http.response.status_code"], Value::Number(status));
        let resent = (number > 0).then_some(Value::Number(number));
        assert_eq!(said.get("http.request.resend_count"), resent.as_ref());
        let error = (number == 0).then(|| Value::Text("503".to_owned()));
        assert_eq!(said.get("error.type"), error.as_ref());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn meters_have_the_names_and_units_of_the_table() {
    let collector = Collector::http().await;
    let (_served, received) = one_job(&collector, "http").await;
    let metrics = received.metrics();
    for (name, metric) in &metrics {
        let told = METERS.iter().find(|meter| meter.name == name);
        let told = told.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!((&*metric.unit, &*metric.description), (told.unit, told.help), "{name}");
        match (told.form, metric.data.as_ref().unwrap()) {
            (MeterType::Counter, Data::Sum(sum)) => {
                assert!(sum.is_monotonic, "{name}");
                let cumulative = AggregationTemporality::Cumulative as i32;
                assert_eq!(sum.aggregation_temporality, cumulative, "{name}");
            }
            (MeterType::Gauge, Data::Gauge(_)) => {}
            (MeterType::Histogram, Data::Histogram(histogram)) => {
                let points = &histogram.data_points;
                assert!(points.iter().all(|point| point.explicit_bounds.len() > 5), "{name}");
            }
            (form, data) => panic!("{name} is no {form:?}: {data:?}"),
        }
    }
    // These metrics have no value for one job that never waited in the store and succeeded in the end.
    let silent = [
        "rewheel.claim.batch",
        "rewheel.jobs.dead",
        "rewheel.notices",
        "rewheel.oldest_due_timestamp",
    ];
    for meter in METERS.iter().filter(|meter| !silent.contains(&meter.name)) {
        assert!(metrics.contains_key(meter.name), "{} did not arrive", meter.name);
    }
    let created = [("kind", "charge-card"), ("outcome", "created")];
    assert_eq!(sum(&metrics["rewheel.jobs.submitted"], &created), 1);
    assert_eq!(sum(&metrics["rewheel.attempts"], &[("kind", "charge-card")]), 2);
    let retried = [("kind", "charge-card"), ("decision", "retry"), ("category", "transient")];
    assert_eq!(sum(&metrics["rewheel.jobs.settled"], &retried), 1);
    let Some(Data::Histogram(took)) = &metrics["rewheel.attempt.duration"].data else {
        panic!("{metrics:?}")
    };
    let counts: Vec<u64> = took.data_points.iter().map(|point| point.count).collect();
    assert_eq!(counts, [2]);
}

#[track_caller]
fn sum(metric: &Metric, labels: &[(&str, &str)]) -> i64 {
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
    let Some(Data::Sum(sum)) = &metric.data else { panic!("{metric:?}") };
    let is_it = |said: &BTreeMap<String, Value>| {
        labels.iter().all(|(name, text)| said.get(*name) == Some(&Value::Text((*text).to_owned())))
    };
    let points = sum.data_points.iter();
    let mut found = points.filter(|point| is_it(&collector::attributes(&point.attributes)));
    match found.next().and_then(|point| point.value) {
        Some(Number::AsInt(value)) => value,
        Some(Number::AsDouble(value)) => panic!("{value} is no count"),
        None => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_carries_the_same() {
    let collector = Collector::grpc().await;
    let (_served, received) = one_job(&collector, "grpc").await;
    let [submit] = received.named("submit charge-card")[..] else { panic!("{received:?}") };
    let attempts = received.named("attempt charge-card");
    assert_eq!(attempts.len(), 2, "{received:?}");
    assert!(attempts.iter().all(|attempt| attempt.links[0].span_id == submit.span_id));
    assert_eq!(sum(&received.metrics()["rewheel.attempts"], &[("kind", "charge-card")]), 2);
}

/// Returns how often the log reports a failed export.
fn told(served: &Served, what: &str) -> usize {
    let said = served.node.said();
    let of_it = said.iter().filter(|line| line.contains("telemetry export failed"));
    of_it.filter(|line| line.contains(what)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_costs_one_line_and_nothing_else() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let telemetry = format!("otlp = \"http://{closed}\"\ninterval = \"1s\"");
    let mut served = serve(&config(&telemetry), &[]).await;
    served.submit(None).await;
    served.until_succeeded().await;
    let both = async || told(&served, "spans") + told(&served, "meters") == 2;
    served::until("both are told", both).await;
    served.submit(None).await;
    served.until_succeeded().await;
    let counts = (told(&served, "spans"), told(&served, "meters"));
    assert_eq!(counts, (1, 1), "{:?}", served.node.said());
    assert!(served.node.terminate().await.success(), "{:?}", served.node.said());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_telemetry_the_callee_hears_of_the_span_that_submitted() {
    let mut served = serve(&config(""), &[]).await;
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    served.submit(Some(&traceparent)).await;
    served.until_succeeded().await;
    assert_eq!(served.callee.heard(), [traceparent.clone(), traceparent]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_sampled_is_not_sent() {
    let collector = Collector::http().await;
    let telemetry = format!("otlp = \"{}\"\nsample = 0.0", collector.url);
    let mut served = serve(&config(&telemetry), &[]).await;
    served.submit(None).await;
    served.until_succeeded().await;
    assert!(served.node.terminate().await.success(), "{:?}", served.node.said());
    let received = collector.received();
    assert!(received.named("attempt charge-card").is_empty(), "{received:?}");
    assert!(received.metrics().contains_key("rewheel.attempts"));
    assert_eq!(served.callee.heard(), ["", ""]);
}
