//! Clients that pass the trace on to the services that they call.

#[cfg(feature = "reqwest")]
use super::assert_said;
use super::{POLICY, block_on, check_retried, spans};
use opentelemetry_sdk::trace::SpanData;
use rewheel::{ManualClock, Pipeline};
#[cfg(feature = "reqwest")]
use rewheel::{Retry, millis};
use std::sync::{Arc, Mutex};

/// Checks that each attempt has passed its own span on.
#[track_caller]
fn check_passed_on(spans: &[SpanData], told: &[String]) {
    let [call, attempts @ ..] = spans else { panic!("no spans") };
    let expected: Vec<String> = attempts
        .iter()
        .map(|attempt| {
            let of = &attempt.span_context;
            assert_eq!(attempt.parent_span_id, call.span_context.span_id());
            format!("00-{}-{}-01", of.trace_id(), of.span_id())
        })
        .collect();
    assert_eq!(*told, expected);
}

/// Answers with these statuses, and then with 200; notes the header `traceparent` of each request.
#[derive(Clone, Debug)]
struct Traced {
    statuses: Vec<u16>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Traced {
    fn new(statuses: &[u16]) -> Traced {
        let propagator = opentelemetry_sdk::propagation::TraceContextPropagator::new();
        opentelemetry::global::set_text_map_propagator(propagator);
        Traced { statuses: statuses.to_vec(), told: Arc::default() }
    }

    fn answer(&self, headers: &axum::http::HeaderMap) -> axum::http::StatusCode {
        let mut told = self.told.lock().unwrap();
        let status = self.statuses.get(told.len()).copied().unwrap_or(200);
        let parent = headers.get("traceparent").map(|value| value.to_str().unwrap().to_owned());
        told.push(parent.unwrap_or_default());
        axum::http::StatusCode::from_u16(status).unwrap()
    }
}

#[test]
fn a_client_layer_passes_the_trace_on_with_each_attempt() {
    use axum::body::Body;
    use axum::http::{Request, Response};
    use rewheel::http::HttpPipelineLayer;
    use tower::{ServiceBuilder, ServiceExt as _, service_fn};

    let clock = ManualClock::new();
    let traced = Traced::new(&[504]);
    let seen = traced.clone();
    let spans = spans(|| {
        let service = service_fn(move |request: Request<Body>| {
            let status = seen.answer(request.headers());
            let response = Response::builder().status(status).body(Body::empty()).unwrap();
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        let pipeline = Pipeline::new().named("orders").clock(&clock).retry(POLICY);
        let client = ServiceBuilder::new().layer(HttpPipelineLayer::new(&pipeline));
        let request = Request::get("/").body(Body::empty()).unwrap();
        let call = client.service(service).oneshot(request);
        assert_eq!(block_on(clock.drive(call)).unwrap().status(), 200);
    });
    check_retried(&spans, "orders");
    check_passed_on(&spans, &traced.told.lock().unwrap());
}

#[cfg(feature = "reqwest")]
#[test]
fn the_client_has_a_span_for_each_request_and_passes_it_on() {
    use rewheel::reqwest::{Announce, Client};

    let traced = Traced::new(&[503, 503]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seen = traced.clone();
    let handler = async move |headers: axum::http::HeaderMap| seen.answer(&headers);
    let app = axum::Router::new().route("/", axum::routing::get(handler));
    let server = runtime.block_on(crate::net::Server::start(app));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let retry = Retry::fixed(millis(1)).attempts_max(2);
    let client = Client::builder(http.clone()).retry(retry).build();
    let get = |client: &Client| runtime.block_on(client.get(server.url("/")).send()).unwrap();

    let failed = spans(|| assert_eq!(get(&client).status(), 503));
    assert_eq!((&*failed[0].name, failed.len()), (&*server.address.to_string(), 3));
    check_passed_on(&failed, &traced.told.lock().unwrap());
    let expected = [("retry.success", "false"), ("retry.failure_reason", "'attempts_exhausted'")];
    assert_said(&failed[0], &expected);

    traced.told.lock().unwrap().drain(..1);
    let silent = Client::builder(http).announce(Announce::Never).build();
    let spans = spans(|| assert_eq!(get(&silent).status(), 200));
    assert_eq!(spans.len(), 3, "a span for the call, and for each attempt");
    assert_eq!(traced.told.lock().unwrap()[1..], ["", ""]);
}
