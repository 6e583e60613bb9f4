//! Server layer that reads what the caller says about its call.

use super::Boxed;
use super::body::TextBody;
use super::refusal::{Refusal, is_grpc};
use crate::call_context::{CallContext, wall_clock};
use crate::clock::Clock;
use crate::timeout::Timeout;
use ::http::{HeaderMap, Request, Response};
use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// What happens to a request that still runs when its caller stops waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtDeadline {
    /// The layer drops its future, as a server does when the client disconnects, and answers 504. The default.
    #[default]
    Cut,
    /// It runs to its end.
    Finish,
}

/// Reads the headers of [`CallContext`], and runs the request in its [`scope`](CallContext::scope).
///
/// - A request whose deadline has passed does not start: the layer answers 504 `deadline_passed` (gRPC: `DEADLINE_EXCEEDED`).
/// - A request that runs at its deadline is stopped; see [`at_deadline`](CallContextLayer::at_deadline).
/// - If the caller repeats the call, retries in the handler make one attempt each. So three services with three attempts each make
///   3 calls to the last one, not 27.
/// - Calls that the handler makes with the clients of this crate pass deadline and retries on.
///
/// Requests without the headers are not changed. A client can set the headers as it likes, but it only affects its own requests.
///
/// The deadline is a time of the calendar, so the clocks of caller and server should be synchronized (NTP). The layer adds a
/// tolerance to each deadline: see [`clock_tolerance`](CallContextLayer::clock_tolerance).
///
/// ```
/// use axum::{Router, routing::get};
/// use rewheel::{CallContext, http::CallContextLayer};
///
/// let app: Router = Router::new()
///     .route("/", get(|| async { format!("{:?}", CallContext::current()) }))
///     .layer(CallContextLayer::new());
/// # drop(app);
/// ```
#[derive(Clone, Debug)]
pub struct CallContextLayer {
    at_deadline: AtDeadline,
    tolerance: Duration,
    clock: Clock,
}

impl CallContextLayer {
    /// Creates the layer.
    pub const fn new() -> CallContextLayer {
        CallContextLayer {
            at_deadline: AtDeadline::Cut,
            // More than the error of a clock with NTP, less than what a caller waits for.
            tolerance: Duration::from_millis(500),
            clock: Clock::system(),
        }
    }

    /// Sets what happens to a request that still runs at its deadline.
    #[must_use]
    pub const fn at_deadline(mut self, at_deadline: AtDeadline) -> CallContextLayer {
        self.at_deadline = at_deadline;
        self
    }

    /// Sets the time that is added to each deadline, because the clock of the caller may be slow. The default is 500 ms.
    #[must_use]
    pub const fn clock_tolerance(mut self, tolerance: Duration) -> CallContextLayer {
        self.tolerance = tolerance;
        self
    }

    /// Uses another clock for the time until the deadline. Whether a deadline has passed is decided by the time of the calendar.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> CallContextLayer {
        self.clock = clock.into();
        self
    }
}

impl Default for CallContextLayer {
    fn default() -> CallContextLayer {
        CallContextLayer::new()
    }
}

impl<S> Layer<S> for CallContextLayer {
    type Service = CallContextService<S>;

    fn layer(&self, inner: S) -> CallContextService<S> {
        CallContextService { inner, layer: self.clone() }
    }
}

/// Runs each request in the context of its caller. Created by [`CallContextLayer`].
#[derive(Clone)]
pub struct CallContextService<S> {
    inner: S,
    layer: CallContextLayer,
}

impl<S, B, R> Service<Request<B>> for CallContextService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: TextBody + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Boxed<Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(context) = read(request.headers()) else {
            return Box::pin(self.inner.call(request));
        };
        let is_grpc = is_grpc(request.headers());
        let refused = Refusal::DeadlinePassed;
        let left = context.time_left(wall_clock());
        let is_late = context.deadline().is_some_and(|deadline| {
            wall_clock().duration_since(deadline).is_ok_and(|late| late > self.layer.tolerance)
        });
        if is_late {
            return Box::pin(async move { Ok(refused.response(is_grpc)) });
        }
        let running = context.scope(self.inner.call(request));
        let left = left.filter(|_| self.layer.at_deadline == AtDeadline::Cut);
        let Some(left) = left.map(|left| left.saturating_add(self.layer.tolerance)) else {
            return Box::pin(running);
        };
        let limit = left.max(Duration::from_nanos(1));
        let timeout = Timeout::new(limit).clock(self.layer.clock.clone());
        let started = self.layer.clock.now();
        Box::pin(async move {
            let cut = timeout.cut(started, running).await;
            cut.unwrap_or_else(|| Ok(refused.response(is_grpc)))
        })
    }
}

/// Reads the headers of a context.
pub(super) fn read(headers: &HeaderMap) -> Option<CallContext> {
    CallContext::parse(|name| headers.get(name)?.to_str().ok())
}

impl<S: fmt::Debug> fmt::Debug for CallContextService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContextService")
            .field("inner", &self.inner)
            .field("layer", &self.layer)
            .finish()
    }
}
