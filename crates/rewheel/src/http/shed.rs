//! Server layer that rejects requests above a number of concurrent ones.

use super::Boxed;
use super::body::TextBody;
use super::refusal::{Refusal, is_grpc};
use crate::adaptive::{AdaptiveLimit, AdaptivePermit};
use crate::bulkhead::{Bulkhead, BulkheadPermit};
use crate::error::Refused;
use ::http::{HeaderValue, Request, Response, StatusCode};
use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// Limits the number of requests that run at the same time: by a fixed number, or by one that follows what the server can do. A
/// request that gets no slot gets 503 `overloaded` with `Retry-After` (gRPC: `UNAVAILABLE` with
/// `grpc-retry-pushback-ms`), and its handler does not run.
///
/// A request waits for a slot as long as the limit allows: see [`queue_max`](crate::BulkheadBuilder::queue_max) and
/// [`wait_max`](crate::BulkheadBuilder::wait_max). It keeps its slot until the handler returns its response; sending the body
/// of the response needs no slot.
///
/// ```
/// use axum::{Router, routing::get};
/// use rewheel::{Bulkhead, http::ShedLayer, millis};
///
/// let slots = Bulkhead::concurrency(200).queue_max(50).wait_max(millis(100)).build();
/// let app: Router =
///     Router::new().route("/", get(|| async { "hello" })).layer(ShedLayer::new(&slots));
/// # drop(app);
/// ```
#[derive(Clone, Debug)]
pub struct ShedLayer {
    slots: Slots,
    retry_after: Duration,
}

#[derive(Clone, Debug)]
enum Slots {
    Fixed(Bulkhead),
    Adaptive(AdaptiveLimit),
}

/// The slot of one request.
enum Slot {
    Fixed(BulkheadPermit),
    Adaptive(AdaptivePermit),
}

impl Slots {
    async fn acquire(&self) -> Result<Slot, Refused> {
        match self {
            Slots::Fixed(slots) => slots.acquire().await.map(Slot::Fixed),
            Slots::Adaptive(slots) => slots.acquire().await.map(Slot::Adaptive),
        }
    }
}

impl ShedLayer {
    /// Creates the layer. It and others with the same bulkhead share its slots.
    pub fn new(slots: &Bulkhead) -> ShedLayer {
        ShedLayer { slots: Slots::Fixed(slots.clone()), retry_after: Duration::from_secs(1) }
    }

    /// Creates the layer with a limit that it adapts by the times of the responses.
    ///
    /// Responses with 503 and 504 (gRPC: `UNAVAILABLE`, `DEADLINE_EXCEEDED` and `RESOURCE_EXHAUSTED`) lower the limit: the server, or
    /// a service behind it, cannot do more. Other statuses of failure and 429 do not count, because they often come early, and neither
    /// does a request whose client has disconnected. Use one limit for routes that take about equally long.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use rewheel::{AdaptiveLimit, http::ShedLayer, millis};
    ///
    /// let slots = AdaptiveLimit::between(10, 1_000).queue_max(50).wait_max(millis(100)).build();
    /// let app: Router =
    ///     Router::new().route("/", get(|| async { "hello" })).layer(ShedLayer::adaptive(&slots));
    /// # drop(app);
    /// ```
    pub fn adaptive(slots: &AdaptiveLimit) -> ShedLayer {
        ShedLayer { slots: Slots::Adaptive(slots.clone()), retry_after: Duration::from_secs(1) }
    }

    /// Sets the `Retry-After` of rejected requests. The default is 1 s; HTTP has whole seconds.
    #[must_use]
    pub const fn retry_after(mut self, retry_after: Duration) -> ShedLayer {
        self.retry_after = retry_after;
        self
    }
}

impl<S> Layer<S> for ShedLayer {
    type Service = ShedService<S>;

    fn layer(&self, inner: S) -> ShedService<S> {
        ShedService { inner, layer: self.clone() }
    }
}

/// Limits the number of requests that run at the same time. Created by [`ShedLayer`].
#[derive(Clone)]
pub struct ShedService<S> {
    inner: S,
    layer: ShedLayer,
}

impl<S, B, R> Service<Request<B>> for ShedService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: TextBody + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Boxed<Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Readiness belongs to the instance that was polled; a clone has reserved nothing.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let ShedLayer { slots, retry_after } = self.layer.clone();
        Box::pin(async move {
            match slots.acquire().await {
                Ok(Slot::Fixed(_slot)) => inner.call(request).await,
                Ok(Slot::Adaptive(slot)) => {
                    let response = inner.call(request).await?;
                    match load_of(&response) {
                        Some(Load::Served) => slot.success(),
                        Some(Load::TooMuch) => slot.failure(),
                        None => drop(slot),
                    }
                    Ok(response)
                }
                Err(refused) => {
                    let retry_in = refused.retry_in.unwrap_or(retry_after);
                    let refusal = Refusal::Overloaded(Some(retry_in));
                    Ok(refusal.response(is_grpc(request.headers())))
                }
            }
        })
    }
}

/// What a response says about the load of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Served,
    TooMuch,
}

/// Returns what a response says about the load of the server, if it says anything.
fn load_of<R>(response: &Response<R>) -> Option<Load> {
    let grpc = response.headers().get("grpc-status").map(HeaderValue::as_bytes);
    match (response.status(), grpc) {
        // `DEADLINE_EXCEEDED`, `RESOURCE_EXHAUSTED` and `UNAVAILABLE`.
        (_, Some(b"4" | b"8" | b"14")) => Some(Load::TooMuch),
        (_, Some(b"0")) => Some(Load::Served),
        (_, Some(_)) => None,
        (StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT, None) => {
            Some(Load::TooMuch)
        }
        (StatusCode::TOO_MANY_REQUESTS, None) => None,
        (status, None) => (!status.is_server_error()).then_some(Load::Served),
    }
}

impl<S: fmt::Debug> fmt::Debug for ShedService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShedService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
