//! Server layers that reject requests above a limit.

use super::Boxed;
use super::body::TextBody;
use super::refusal::{Refusal, is_grpc};
use crate::bulkhead::Bulkhead;
use crate::limiter::KeyedRateLimiter;
use ::http::request::Parts;
use ::http::{Request, Response};
use std::fmt;
use std::hash::Hash;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// Limits the rate of requests for each key: an account, an address, a route. A request above the limit gets 429 `rate_limited`
/// with `Retry-After` (gRPC: `RESOURCE_EXHAUSTED` with `grpc-retry-pushback-ms`), and its handler does not run.
///
/// ```
/// use axum::{Router, routing::get};
/// use rewheel::{RateLimiter, http::RateLimitLayer};
///
/// let limits = RateLimiter::per_second(20).burst(40).keyed::<String>(100_000);
/// let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(
///     RateLimitLayer::new(&limits, |request| {
///         // A header that a gateway sets. What a client can choose freely is no key.
///         let account = request.headers.get("x-account").map(|value| value.as_bytes());
///         account.unwrap_or_default().escape_ascii().to_string()
///     }),
/// );
/// # drop(app);
/// ```
#[derive(Clone)]
pub struct RateLimitLayer<K, F> {
    limits: KeyedRateLimiter<K>,
    key: F,
}

impl<K, F> RateLimitLayer<K, F>
where
    K: Hash + Eq + Clone,
    F: Fn(&Parts) -> K + Clone,
{
    /// Creates the layer; `key` reads the key from a request. The layer and others with the same limits share their state.
    pub fn new(limits: &KeyedRateLimiter<K>, key: F) -> RateLimitLayer<K, F> {
        RateLimitLayer { limits: limits.clone(), key }
    }
}

impl<S, K: Clone, F: Clone> Layer<S> for RateLimitLayer<K, F> {
    type Service = RateLimitService<S, K, F>;

    fn layer(&self, inner: S) -> RateLimitService<S, K, F> {
        RateLimitService { inner, limits: self.limits.clone(), key: self.key.clone() }
    }
}

/// Limits the rate of requests for each key. Created by [`RateLimitLayer`].
#[derive(Clone)]
pub struct RateLimitService<S, K, F> {
    inner: S,
    limits: KeyedRateLimiter<K>,
    key: F,
}

impl<S, K, F, B, R> Service<Request<B>> for RateLimitService<S, K, F>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    K: Hash + Eq + Clone,
    F: Fn(&Parts) -> K,
    R: TextBody + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Boxed<Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        match self.limits.check(&(self.key)(&parts)) {
            Ok(()) => Box::pin(self.inner.call(Request::from_parts(parts, body))),
            Err(refused) => {
                let refusal = Refusal::RateLimited(refused.retry_in);
                Box::pin(async move { Ok(refusal.response(is_grpc(&parts.headers))) })
            }
        }
    }
}

/// Limits the number of requests that run at the same time. A request that gets no slot gets 503 `overloaded` with `Retry-After`
/// (gRPC: `UNAVAILABLE` with `grpc-retry-pushback-ms`), and its handler does not run.
///
/// A request waits for a slot as long as the bulkhead allows: see [`queue_max`](crate::BulkheadBuilder::queue_max) and
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
    slots: Bulkhead,
    retry_after: Duration,
}

impl ShedLayer {
    /// Creates the layer. It and others with the same bulkhead share its slots.
    pub fn new(slots: &Bulkhead) -> ShedLayer {
        ShedLayer { slots: slots.clone(), retry_after: Duration::from_secs(1) }
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
                Ok(_slot) => inner.call(request).await,
                Err(refused) => {
                    let retry_in = refused.retry_in.unwrap_or(retry_after);
                    let refusal = Refusal::Overloaded(Some(retry_in));
                    Ok(refusal.response(is_grpc(request.headers())))
                }
            }
        })
    }
}

impl<K, F> fmt::Debug for RateLimitLayer<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, K, F> fmt::Debug for RateLimitService<S, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for ShedService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShedService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
