//! Tests the Prometheus text, and that the metrics reference matches the code.

use super::text;
use rewheel_engine::meters::{Distribution, METERS, Meter, MeterType, Reading, Sample, Value};
use std::fmt::Write as _;
use std::path::Path;

fn meter(name: &str) -> &'static Meter {
    METERS.iter().find(|meter| meter.name == name).unwrap()
}

fn reading(name: &str, labels: &[&'static str], value: Value) -> Reading {
    let labels = labels.iter().map(|label| (*label).into()).collect();
    Reading { meter: meter(name), samples: vec![Sample { labels, value }] }
}

#[test]
fn a_meter_is_what_prometheus_reads() {
    let text = text(&[
        reading("rewheel.concurrency.max", &[], Value::Count(256)),
        reading("rewheel.notices", &["a\"b\\c\nd", "sent"], Value::Count(7)),
    ]);
    let expected = "# HELP rewheel_concurrency_max Maximum number of concurrent attempts on this node.\n\
        # TYPE rewheel_concurrency_max gauge\nrewheel_concurrency_max 256\n\
        # HELP rewheel_notices_total Notifications of this node by outcome: sent, \
        suppressed, failed.\n# TYPE rewheel_notices_total counter\n\
        rewheel_notices_total{notifier=\"a\\\"b\\\\c\\nd\",outcome=\"sent\"} 7\n";
    assert_eq!(text, expected);
}

#[test]
fn a_histogram_has_buckets_a_sum_and_a_count() {
    let read = Distribution { buckets: vec![(0.001, 1), (2.5, 2)], count: 3, sum: 9.5 };
    let text =
        text(&[reading("rewheel.attempt.duration", &["mail"], Value::Distribution(read.clone()))]);
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            r#"rewheel_attempt_duration_seconds_bucket{kind="mail",le="0.001"} 1"#,
            r#"rewheel_attempt_duration_seconds_bucket{kind="mail",le="2.5"} 2"#,
            r#"rewheel_attempt_duration_seconds_bucket{kind="mail",le="+Inf"} 3"#,
            r#"rewheel_attempt_duration_seconds_sum{kind="mail"} 9.5"#,
            r#"rewheel_attempt_duration_seconds_count{kind="mail"} 3"#,
        ]
    );
    let plain = super::text(&[reading("rewheel.claim.batch", &[], Value::Distribution(read))]);
    assert!(plain.contains("\nrewheel_claim_batch_bucket{le=\"+Inf\"} 3\n"), "{plain}");
}

/// `docs/metrics.md` must match the code. `REWHEEL_WRITE=1` writes it.
#[test]
fn the_reference_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let expected = reference();
    if std::env::var_os("REWHEEL_WRITE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let hint = "docs/metrics.md is old: run this test with REWHEEL_WRITE=1";
    assert!(committed == expected, "{hint}");
}

fn reference() -> String {
    let mut page = "# Metrics\n\n\
        `REWHEEL_WRITE=1 cargo test -p rewheel-server the_reference` generates this page. [telemetry.md](telemetry.md) describes how to\n\
        export metrics and spans.\n\n\
        ## Engine and server\n\n\
        `GET /metrics` returns the metrics of this table in the Prometheus text format, with the name in the column `Prometheus`. OTLP\n\
        exports them with the name in the column `OpenTelemetry`. The first six metrics describe the store, so every server of a\n\
        fleet reports the same values, except for the age of the sample. All other metrics describe one server; its counters start at 0 when the server starts. Labels have few values (kinds, states,\n\
        decisions, categories, verbs), never tenants, keys or jobs. For kinds beyond the first 1,000, only the metrics of the store\n\
        are reported.\n\n\
        | Prometheus | OpenTelemetry | type | unit | labels | meaning |\n\
        | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for meter in &METERS {
        let labels: Vec<String> = meter.labels.iter().map(|label| format!("`{label}`")).collect();
        let form = match meter.form {
            MeterType::Counter => "counter",
            MeterType::Gauge => "gauge",
            MeterType::Histogram => "histogram",
        };
        let _ = writeln!(
            page,
            "| `{}` | `{}` | {form} | `{}` | {} | {} |",
            meter.prometheus_name(),
            meter.name,
            meter.unit,
            labels.join(" "),
            meter.help
        );
    }
    page.push_str(
        "\n## Library\n\n\
        With the feature `otel` of the crate `rewheel`, the observer `rewheel::otel::Metrics` records these metrics. Each has the label\n\
        `name`: the name of the call, the pipeline or the policy. The values of `reason` in `retry.failures` are the names of `rewheel::GiveUpReason`.\n\n\
        | OpenTelemetry | type | unit | more labels | meaning |\n\
        | --- | --- | --- | --- | --- |\n",
    );
    for meter in rewheel::otel::Meter::ALL {
        let labels: Vec<String> = meter.labels.iter().map(|label| format!("`{label}`")).collect();
        let rewheel::otel::Meter { name, form, unit, help, .. } = meter;
        let _ = writeln!(page, "| `{name}` | {form} | `{unit}` | {} | {help} |", labels.join(" "));
    }
    page
}
