//! Runs exporters on the server's runtime, and logs once when an export fails.

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;

/// An exporter that a thread of the SDK polls, and that needs the timers and sockets of the runtime.
#[derive(Debug)]
pub(super) struct Watched<E> {
    exporter: E,
    runtime: Handle,
    what: &'static str,
    is_failing: AtomicBool,
}

impl<E> Watched<E> {
    pub(super) fn new(exporter: E, runtime: &Handle, what: &'static str) -> Watched<E> {
        let runtime = runtime.clone();
        Watched { exporter, runtime, what, is_failing: AtomicBool::new(false) }
    }

    async fn run(&self, export: impl Future<Output = OTelSdkResult>) -> OTelSdkResult {
        let mut export = pin!(export);
        let done = poll_fn(|cx| {
            let _inside = self.runtime.enter();
            export.as_mut().poll(cx)
        })
        .await;
        let was_failing = self.is_failing.swap(done.is_err(), Ordering::Relaxed);
        match &done {
            Err(error) if !was_failing => {
                tracing::warn!(what = self.what, %error, "telemetry export failed; the server drops telemetry until the collector responds");
            }
            Ok(()) if was_failing => {
                tracing::info!(what = self.what, "telemetry export works again")
            }
            Ok(()) | Err(_) => {}
        }
        done
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.run(self.exporter.export(batch)).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Watched<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.run(self.exporter.export(metrics)).await
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
