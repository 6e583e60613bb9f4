//! Client layer that runs each request under a pipeline.

use super::Boxed;
use super::body::{Parts, Read, ReplayBody, read};
use crate::call_context::{CallContext, Retries, wall_clock};
use crate::classify::{Class, Classify, RetryAfter};
use crate::error::{Error, GiveUpReason, Refused};
use crate::pipeline::Pipeline;
use crate::retry::Attempt;
use crate::traced;
use ::http::request::Parts as Head;
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use bytes::Bytes;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// Which requests a client layer may send again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repeatable {
    /// GET, HEAD, OPTIONS, TRACE, PUT, DELETE, and all that have an `Idempotency-Key`. The default for HTTP.
    #[default]
    Idempotent,
    /// All requests: for services whose methods are safe to repeat.
    All,
}

/// How a client layer reads a failure from a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// By the status and `Retry-After`. The default.
    #[default]
    Http,
    /// By the gRPC status and `grpc-retry-pushback-ms`. Only a response without messages can be a failure that is retried: once
    /// messages arrive, the call counts as answered.
    Grpc,
}

/// Runs each request under a [`Pipeline`]. The layer reads the body of a request up to a limit, so that each attempt sends a copy. A
/// request with a longer body passes, and is not retried.
///
/// [`PipelineLayer`](crate::tower::PipelineLayer) needs requests that can be cloned; those of HTTP cannot. Each attempt sends the
/// headers of [`CallContext`].
///
/// ```
/// use axum::body::Body;
/// use axum::http::{Request, Response, StatusCode};
/// use rewheel::{Pipeline, Retry, http::HttpPipelineLayer, millis};
/// use std::io;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// static CALLS: AtomicU32 = AtomicU32::new(0);
/// let server = service_fn(|_: Request<Body>| async {
///     let status = match CALLS.fetch_add(1, Ordering::Relaxed) {
///         0 => StatusCode::SERVICE_UNAVAILABLE,
///         _ => StatusCode::OK,
///     };
///     Ok::<_, io::Error>(Response::builder().status(status).body(Body::empty()).unwrap())
/// });
/// let policies = Pipeline::new().retry(Retry::exponential(millis(1)));
/// let client = ServiceBuilder::new().layer(HttpPipelineLayer::new(&policies)).service(server);
///
/// let request = Request::put("/orders/7").body(Body::from("{}")).unwrap();
/// assert_eq!(client.oneshot(request).await.unwrap().status(), StatusCode::OK);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HttpPipelineLayer {
    pipeline: Pipeline,
    repeatable: Repeatable,
    protocol: Protocol,
    body_bytes_max: usize,
}

impl HttpPipelineLayer {
    /// Default for the longest body that is kept for another attempt: most requests of an API fit.
    pub const BODY_BYTES_MAX: usize = 64 * 1024;

    /// Creates the layer.
    pub fn new(pipeline: &Pipeline) -> HttpPipelineLayer {
        HttpPipelineLayer {
            pipeline: pipeline.clone(),
            repeatable: Repeatable::Idempotent,
            protocol: Protocol::Http,
            body_bytes_max: HttpPipelineLayer::BODY_BYTES_MAX,
        }
    }

    /// Sets which requests may be sent again.
    #[must_use]
    pub const fn repeatable(mut self, repeatable: Repeatable) -> HttpPipelineLayer {
        self.repeatable = repeatable;
        self
    }

    /// Sets how a failure is read from a response.
    #[must_use]
    pub const fn protocol(mut self, protocol: Protocol) -> HttpPipelineLayer {
        self.protocol = protocol;
        self
    }

    /// Sets the longest body that is kept for another attempt. The default is 64 KiB.
    #[must_use]
    pub const fn body_bytes_max(mut self, bytes: usize) -> HttpPipelineLayer {
        self.body_bytes_max = bytes;
        self
    }

    fn may_repeat(&self, head: &Head) -> bool {
        let is_idempotent = matches!(
            head.method,
            Method::GET
                | Method::HEAD
                | Method::OPTIONS
                | Method::TRACE
                | Method::PUT
                | Method::DELETE
        );
        match self.repeatable {
            Repeatable::All => true,
            Repeatable::Idempotent => is_idempotent || head.headers.contains_key("idempotency-key"),
        }
    }
}

impl<S> Layer<S> for HttpPipelineLayer {
    type Service = HttpPipelineService<S>;

    fn layer(&self, inner: S) -> HttpPipelineService<S> {
        HttpPipelineService { inner, layer: self.clone() }
    }
}

/// Runs each request under a pipeline. Created by [`HttpPipelineLayer`].
#[derive(Clone)]
pub struct HttpPipelineService<S> {
    inner: S,
    layer: HttpPipelineLayer,
}

impl<S, B, R> Service<Request<B>> for HttpPipelineService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Classify + Send,
    B: ReplayBody,
    B::Error: Send,
    R: Send,
{
    type Response = Response<R>;
    type Error = Error<S::Error>;
    type Future = Boxed<Result<Response<R>, Error<S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(|error| {
            Error::new(Refused::new(GiveUpReason::Stopped, None), 0, Duration::ZERO, Some(error))
        })
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Readiness belongs to the instance that was polled; a clone has reserved nothing.
        let fresh = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, fresh);
        let layer = self.layer.clone();
        Box::pin(async move { run(layer, ready, request).await })
    }
}

/// What all attempts of a request share.
struct Shared<S, B> {
    /// Behind a lock, because services need not be `Sync`.
    service: Mutex<S>,
    /// The service that was polled before the request came.
    ready: Mutex<Option<S>>,
    head: Head,
    /// The bytes for each attempt, or a body for one.
    bytes: Bytes,
    once: Mutex<Option<B>>,
    retries: Retries,
    protocol: Protocol,
}

async fn run<S, B, R>(
    layer: HttpPipelineLayer,
    ready: S,
    request: Request<B>,
) -> Result<Response<R>, Error<S::Error>>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: Classify,
    B: ReplayBody,
{
    let (head, body) = request.into_parts();
    let (bytes, once) = if layer.may_repeat(&head) {
        match read(body, layer.body_bytes_max).await {
            Read::Whole(bytes) => (bytes, None),
            Read::Once(body) => (Bytes::new(), Some(body)),
        }
    } else {
        (Bytes::new(), Some(body))
    };
    let policies = if once.is_none() { layer.pipeline } else { layer.pipeline.without_retry() };
    let policies = match CallContext::current().and_then(|own| own.time_left(wall_clock())) {
        Some(Duration::ZERO) => return Err(Refused::new(GiveUpReason::Deadline, None).into()),
        Some(left) => policies.within(left),
        None => policies,
    };
    let retries = Retries::of_call(policies.may_repeat(), policies.has_budget());
    let shared = Shared {
        service: Mutex::new(ready.clone()),
        ready: Mutex::new(Some(ready)),
        head,
        bytes,
        once: Mutex::new(once),
        retries,
        protocol: layer.protocol,
    };
    let (shared, protocol) = (Arc::new(shared), layer.protocol);
    let attempt = |attempt: Attempt| {
        let shared = Arc::clone(&shared);
        async move { shared.attempt(attempt).await }
    };
    traced::run(&policies, attempt, move |result| judge(protocol, result)).await
}

impl<S, B> Shared<S, B> {
    async fn attempt<R>(&self, attempt: Attempt) -> Result<Response<R>, S::Error>
    where
        S: Service<Request<B>, Response = Response<R>> + Clone,
        B: ReplayBody,
    {
        let mut service = match take(&self.ready) {
            Some(ready) => ready,
            None => {
                let mut service = lock(&self.service).clone();
                poll_fn(|cx| service.poll_ready(cx)).await?;
                service
            }
        };
        let body =
            take(&self.once).unwrap_or_else(|| B::of_parts(Parts::whole(self.bytes.clone())));
        let mut head = self.head.clone();
        let context = CallContext::of_attempt(attempt, self.retries, wall_clock());
        announce(&mut head.headers, &context);
        traced::add_headers(&mut head.headers);
        if let (Protocol::Grpc, Some(left)) = (self.protocol, attempt.time_left()) {
            set_grpc_timeout(&mut head.headers, left);
        }
        service.call(Request::from_parts(head, body)).await
    }
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    lock(slot).take()
}

fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn announce(headers: &mut HeaderMap, context: &CallContext) {
    for (name, value) in context.headers() {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// Tells a gRPC server how long the attempt waits, unless the caller has said so itself.
fn set_grpc_timeout(headers: &mut HeaderMap, left: Duration) {
    // gRPC allows eight digits.
    let millis = left.as_millis().clamp(1, 99_999_999);
    if let Ok(value) = HeaderValue::try_from(format!("{millis}m")) {
        headers.entry("grpc-timeout").or_insert(value);
    }
}

fn judge<R, E: Classify>(protocol: Protocol, result: &Result<Response<R>, E>) -> Class {
    let response = match result {
        Ok(response) => response,
        Err(error) => return error.classify(),
    };
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    match (protocol, header("grpc-status")) {
        (Protocol::Http, _) => {
            let now = header("date").and_then(RetryAfter::parse_date).unwrap_or_else(wall_clock);
            Class::of_response(response.status().as_u16(), header("retry-after"), now)
        }
        (Protocol::Grpc, Some(status)) => {
            Class::of_grpc(status.parse().unwrap_or(2), header("grpc-retry-pushback-ms"))
        }
        // A proxy that does not know gRPC answers with a status of HTTP only.
        (Protocol::Grpc, None) => Class::of_status(response.status().as_u16()),
    }
}

impl<S: fmt::Debug> fmt::Debug for HttpPipelineService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpPipelineService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
