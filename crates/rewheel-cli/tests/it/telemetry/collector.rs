//! A fake OpenTelemetry collector that records what it receives.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::collections::BTreeMap;
use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;

/// The requests received so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    traces: Vec<ExportTraceServiceRequest>,
    metrics: Vec<ExportMetricsServiceRequest>,
}

type Kept = Arc<Mutex<Received>>;

/// A collector that listens while it exists.
pub(crate) struct Collector {
    pub(crate) url: String,
    kept: Kept,
    _serving: JoinSet<()>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
    Other(String),
}

impl Collector {
    pub(crate) async fn http() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let kept = Kept::default();
        let router = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/metrics", post(metrics))
            .with_state(Arc::clone(&kept));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).into_future().await.unwrap() });
        Collector { url, kept, _serving: serving }
    }

    pub(crate) async fn grpc() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let kept = Kept::default();
        let (of_traces, of_metrics) = (Grpc(Arc::clone(&kept)), Grpc(Arc::clone(&kept)));
        let server = tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(of_traces))
            .add_service(MetricsServiceServer::new(of_metrics));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            server.serve_with_incoming(TcpIncoming::from(listener)).await.unwrap();
        });
        Collector { url, kept, _serving: serving }
    }

    pub(crate) fn received(&self) -> Received {
        self.kept.lock().unwrap().clone()
    }
}

async fn traces(State(kept): State<Kept>, body: Bytes) -> Vec<u8> {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    kept.lock().unwrap().traces.push(request);
    ExportTraceServiceResponse::default().encode_to_vec()
}

async fn metrics(State(kept): State<Kept>, body: Bytes) -> Vec<u8> {
    let request = ExportMetricsServiceRequest::decode(body).unwrap();
    kept.lock().unwrap().metrics.push(request);
    ExportMetricsServiceResponse::default().encode_to_vec()
}

struct Grpc(Kept);

#[tonic::async_trait]
impl TraceService for Grpc {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        self.0.lock().unwrap().traces.push(request.into_inner());
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Grpc {
    async fn export(
        &self,
        request: tonic::Request<ExportMetricsServiceRequest>,
    ) -> Result<tonic::Response<ExportMetricsServiceResponse>, tonic::Status> {
        self.0.lock().unwrap().metrics.push(request.into_inner());
        Ok(tonic::Response::new(ExportMetricsServiceResponse::default()))
    }
}

impl Received {
    /// Returns the spans with a name, the earliest first.
    pub(crate) fn named(&self, name: &str) -> Vec<&Span> {
        let resources = self.traces.iter().flat_map(|request| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        let mut spans: Vec<&Span> =
            scopes.flat_map(|scope| &scope.spans).filter(|span| span.name == name).collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }

    /// Returns the latest value of each metric.
    pub(crate) fn metrics(&self) -> BTreeMap<String, Metric> {
        let resources = self.metrics.iter().flat_map(|request| &request.resource_metrics);
        let scopes = resources.flat_map(|resource| &resource.scope_metrics);
        let metrics = scopes.flat_map(|scope| &scope.metrics);
        metrics.map(|metric| (metric.name.clone(), metric.clone())).collect()
    }

    /// Returns the service names of the senders.
    pub(crate) fn services(&self) -> Vec<String> {
        let traces = self.traces.iter().flat_map(|request| &request.resource_spans);
        let metrics = self.metrics.iter().flat_map(|request| &request.resource_metrics);
        let traces = traces.filter_map(|spans| spans.resource.as_ref());
        let metrics = metrics.filter_map(|metrics| metrics.resource.as_ref());
        let mut names: Vec<String> = traces
            .chain(metrics)
            .map(|resource| match attributes(&resource.attributes).remove("service.name") {
                Some(Value::Text(name)) => name,
                other => panic!("{other:?}"),
            })
            .collect();
        names.dedup();
        names
    }
}

pub(crate) fn attributes(all: &[KeyValue]) -> BTreeMap<String, Value> {
    let read = |one: &KeyValue| {
        let value = match one.value.as_ref().and_then(|value| value.value.clone()) {
            Some(any_value::Value::StringValue(text)) => Value::Text(text),
            Some(any_value::Value::IntValue(number)) => Value::Number(number),
            Some(any_value::Value::BoolValue(flag)) => Value::Flag(flag),
            other => Value::Other(format!("{other:?}")),
        };
        (one.key.clone(), value)
    };
    all.iter().map(read).collect()
}
