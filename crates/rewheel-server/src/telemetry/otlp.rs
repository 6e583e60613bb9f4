//! Sends spans and metrics over OTLP.

use super::sampler::Gate;
use super::settings::Target;
use super::watched::Watched;
use super::{Protocol, TelemetryError, TelemetrySettings};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider,
};
use rewheel::{Clock, Random};
use rewheel_engine::{Engine, trace};
use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::Handle;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::{Layer, Registry};

/// Maximum number of spans that wait to be sent: a second of a busy engine, and some megabytes. Further spans are dropped.
const QUEUE_MAX: usize = 32_768;

/// Maximum number of spans per request: some hundred kilobytes, below the limit of every collector.
const BATCH_MAX: usize = 2_048;

/// Timeout of a request. Only the queue waits for it.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a process waits at shutdown for the remaining telemetry to be sent.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// The exporters of this process: OpenTelemetry has global ones only.
static PROVIDERS: OnceLock<Providers> = OnceLock::new();

#[derive(Debug)]
struct Providers {
    traces: Option<SdkTracerProvider>,
    meters: Option<SdkMeterProvider>,
}

/// The telemetry of this process.
#[derive(Debug)]
pub struct Telemetry {
    providers: Option<&'static Providers>,
}

impl Telemetry {
    /// Starts sending what the settings and the environment ask for; nothing if they name no collector. An unavailable collector is not
    /// an error.
    ///
    /// # Errors
    /// Names the invalid setting.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    pub fn start(settings: &TelemetrySettings) -> Result<Telemetry, TelemetryError> {
        settings.check()?;
        let Some(target) = settings.target(|name| std::env::var(name).ok())? else {
            return Ok(Telemetry { providers: None });
        };
        let wrong = |error: ExporterBuildError| TelemetryError::Setting {
            key: "otlp",
            why: error.to_string(),
        };
        let (resource, runtime) = (resource(&target), Handle::current());
        let traces = match settings.traces {
            true => {
                let exporter = Watched::new(spans(&target).map_err(wrong)?, &runtime, "spans");
                let gate = Gate::new(settings.sample, settings.rate, Random::thread());
                trace::begin_only_if(move |linked| gate.begins(linked));
                Some(tracer_provider(exporter, &resource))
            }
            false => None,
        };
        let meters = match settings.metrics {
            true => {
                let exporter = Watched::new(meters(&target).map_err(wrong)?, &runtime, "meters");
                let reader = PeriodicReader::builder(exporter).with_interval(settings.interval);
                let provider = SdkMeterProvider::builder().with_reader(reader.build());
                Some(provider.with_resource(resource).build())
            }
            false => None,
        };
        let providers = Providers { traces, meters };
        PROVIDERS.set(providers).map_err(|_| TelemetryError::Again)?;
        let providers = PROVIDERS.get();
        if let Some(meters) = providers.and_then(|providers| providers.meters.as_ref()) {
            global::set_meter_provider(meters.clone());
        }
        Ok(Telemetry { providers })
    }

    /// Returns the `tracing` layer that sends spans.
    pub fn layer(&self) -> Option<Box<dyn Layer<Registry> + Send + Sync>> {
        let traces = self.providers?.traces.as_ref()?;
        let layer = tracing_opentelemetry::layer()
            .with_tracer(traces.tracer("rewheel"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            // Nothing here uses the current OpenTelemetry context, which would be set at each poll.
            .with_context_activation(false);
        let ours = Targets::new().with_target(trace::TARGET, Level::TRACE);
        Some(layer.with_filter(ours).boxed())
    }
}

fn resource(target: &Target) -> Resource {
    let builder = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match &target.service_name {
        Some(name) => builder.with_service_name(name.clone()).build(),
        None => builder.build(),
    }
}

fn tracer_provider(exporter: Watched<SpanExporter>, resource: &Resource) -> SdkTracerProvider {
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE_MAX)
        .with_max_export_batch_size(BATCH_MAX)
        .with_scheduled_delay(Duration::from_secs(1))
        .build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
    SdkTracerProvider::builder()
        .with_span_processor(processor)
        // The sampling of new traces is decided before a span exists.
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_resource(resource.clone())
        .build()
}

fn spans(target: &Target) -> Result<SpanExporter, ExporterBuildError> {
    match target.protocol {
        Protocol::Http => SpanExporter::builder()
            .with_http()
            .with_http_client(client())
            .with_endpoint(format!("{}/v1/traces", target.endpoint))
            .with_timeout(SEND_TIMEOUT)
            .build(),
        Protocol::Grpc => SpanExporter::builder()
            .with_tonic()
            .with_endpoint(&target.endpoint)
            .with_timeout(SEND_TIMEOUT)
            .build(),
    }
}

fn meters(target: &Target) -> Result<MetricExporter, ExporterBuildError> {
    match target.protocol {
        Protocol::Http => MetricExporter::builder()
            .with_http()
            .with_http_client(client())
            .with_endpoint(format!("{}/v1/metrics", target.endpoint))
            .with_timeout(SEND_TIMEOUT)
            .build(),
        Protocol::Grpc => MetricExporter::builder()
            .with_tonic()
            .with_endpoint(&target.endpoint)
            .with_timeout(SEND_TIMEOUT)
            .build(),
    }
}

/// Builds the HTTP client. The operator chose the collector: it may have any address, and be behind a proxy.
fn client() -> reqwest::Client {
    let builder = || reqwest::Client::builder().timeout(SEND_TIMEOUT);
    // A minimal container has no certificates. Plain HTTP needs none.
    builder().build().or_else(|_| builder().tls_certs_only([]).build()).unwrap_or_default()
}

/// Waits for `stop`, and exports metrics of the engine and its fleet until then, if [`Telemetry::start`] sends any.
pub async fn while_exported(
    engine: Engine,
    settings: TelemetrySettings,
    stop: impl Future<Output = ()>,
) {
    let meters = PROVIDERS.get().and_then(|providers| providers.meters.as_ref());
    if meters.is_none() {
        return stop.await;
    }
    let exported = engine.export_meters(&global::meter("rewheel"));
    let clock = Clock::system();
    let refresh = async {
        loop {
            exported.refresh(&engine).await;
            clock.sleep(settings.interval).await;
        }
    };
    tokio::select! {
        biased;
        () = stop => {}
        () = refresh => {}
    }
}

/// Sends the remaining telemetry, within a time limit.
pub(crate) async fn flush() {
    let Some(providers) = PROVIDERS.get() else { return };
    let sending = tokio::task::spawn_blocking(|| {
        let traces = providers.traces.as_ref().map(SdkTracerProvider::force_flush);
        let meters = providers.meters.as_ref().map(SdkMeterProvider::force_flush);
        // The wrapper of the exporters has logged an error.
        drop((traces, meters));
    });
    let _ = tokio::time::timeout(FLUSH_MAX, sending).await;
}
