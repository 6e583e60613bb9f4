//! Server layer that rejects requests above a rate.

use super::Boxed;
use super::body::TextBody;
use super::refusal::{Refusal, is_grpc};
use crate::limiter::KeyedRateLimiter;
use ::http::request::Parts;
use ::http::{Request, Response};
use std::fmt;
use std::hash::Hash;
use std::task::{Context, Poll};
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
