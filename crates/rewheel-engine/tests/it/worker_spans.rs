//! Tests the spans of attempts that remote workers make.

use crate::still::store;
use opentelemetry::trace::{SpanId, TraceId, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use rewheel::{Category, millis, seconds};
use rewheel_core::{Failure, KindName, Report, WorkerOwner};
use rewheel_engine::trace::TARGET;
use rewheel_engine::{Engine, KindSettings, RunnerKind, WorkerResult};
use std::sync::Arc;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

type Tested = Result<(), Box<dyn std::error::Error>>;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|one| one.key.as_str() == name);
    found.map(|one| one.value.to_string())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_of_a_worker_leads_back_to_the_trace_of_its_submitter() -> Tested {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let filter = Targets::new().with_target(TARGET, LevelFilter::TRACE);
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    let _collected = tracing::subscriber::set_default(subscriber);

    let kind = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    let engine = Engine::builder(Arc::new(store())).kind("mail", kind).start().await?;
    let submit =
        engine.submit_raw("mail", Vec::new()).traceparent(&format!("00-{TRACE}-{SPAN}-01"));
    let job = submit.await?.id;
    let worker = engine.worker_joins("w", WorkerOwner::NoToken).await?;
    let failed = Report::retry(Failure::new(Category::Io, Some("ECONNRESET"), "connection reset"));
    let mut told = Vec::new();
    for (report, took) in [(failed, millis(250)), (Report::Done, millis(40))] {
        let leased = worker.claim(&[KindName::parse("mail")?], 1).await?;
        told.extend(leased[0].job.traceparent.clone());
        let lease = leased[0].lease();
        worker
            .settle(vec![WorkerResult {
                lease,
                report,
                took,
                follow_ups: Vec::new(),
                result: None,
                code: None,
            }])
            .await?;
        tokio::time::sleep(seconds(3)).await;
        worker.heartbeat(&Default::default(), None).await?;
    }
    engine.shutdown(seconds(1)).await;

    let spans = exporter.get_finished_spans()?;
    let named =
        |name: &str| -> Vec<&SpanData> { spans.iter().filter(|span| span.name == name).collect() };
    let [submitted] = named("submit mail")[..] else { panic!("{spans:?}") };
    assert_eq!(submitted.span_context.trace_id(), TraceId::from_hex(TRACE)?);
    assert_eq!(submitted.parent_span_id, SpanId::from_hex(SPAN)?);
    // The worker is told the span of the submit, to make its own spans part of the trace.
    let ours = format!("00-{TRACE}-{}-01", submitted.span_context.span_id());
    assert_eq!(told, [ours.clone(), ours]);

    let attempts = named("attempt mail");
    assert_eq!(attempts.len(), 2, "{spans:?}");
    let decided = [("retry", "250", Some("ECONNRESET")), ("succeed", "40", None)];
    for ((attempt, number), (decision, took, error)) in attempts.iter().zip(1..).zip(decided) {
        // A trace of its own, as for every attempt, with a link to the submit.
        let links: Vec<_> = attempt.links.iter().map(|link| &link.span_context).collect();
        let linked: Vec<_> = links.iter().map(|link| (link.trace_id(), link.span_id())).collect();
        let context = &submitted.span_context;
        assert_eq!(linked, [(context.trace_id(), context.span_id())], "{attempt:?}");
        let said = |name| attribute(attempt, name);
        assert_eq!(said("messaging.message.id"), Some(job.to_string()));
        assert_eq!(said("retry.current_attempt"), Some(format!("{number}")));
        assert_eq!(said("rewheel.decision").as_deref(), Some(decision));
        assert_eq!(said("rewheel.duration_ms").as_deref(), Some(took));
        assert_eq!(said("error.type").as_deref(), error);
    }
    Ok(())
}
