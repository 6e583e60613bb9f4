//! Tower layer for a pipeline.
//!
//! [`Pipeline::layer`] does for a [`Service`] what a [`Pipeline`] does for a closure: each request runs under all its policies,
//! with as many attempts of the inner service as they allow.
//!
//! ```
//! use rewheel::{CircuitBreaker, Pipeline, Retry, millis, seconds};
//! use std::io;
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), rewheel::Error<io::Error>> {
//! let breaker = CircuitBreaker::consecutive(5).named("pages").build();
//! let policies = Pipeline::new()
//!     .timeout(seconds(10))
//!     .retry(Retry::exponential(millis(1)))
//!     .circuit_breaker(&breaker);
//!
//! static CALLS: AtomicU32 = AtomicU32::new(0);
//! let mut pages = ServiceBuilder::new().layer(policies.layer()).service(service_fn(
//!     |number: u32| async move {
//!         match CALLS.fetch_add(1, Ordering::Relaxed) {
//!             0 => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
//!             _ => Ok(format!("page {number}")),
//!         }
//!     },
//! ));
//!
//! assert_eq!(pages.ready().await?.call(7).await?, "page 7");
//! assert_eq!(CALLS.load(Ordering::Relaxed), 2);
//! # Ok(())
//! # }
//! ```
//!
//! **State is shared.** Frameworks may apply a layer for each route, connection or even request. All services of one pipeline
//! share the same breakers, limiters, bulkheads and budgets, so this is harmless.
//!
//! **Steps for each key.** [`Pipeline::layer_keyed`] takes the key from the request, for example its host.
//!
//! **Readiness is kept.** A service that is ready may have reserved something for the next call: a permit, a slot in a buffer.
//! The first attempt uses this reservation. Each later attempt uses its own clone of the service, and waits until the clone is
//! ready. This wait is part of the attempt: a timeout ends it, and an error from it is classified like any other error. A
//! reservation is released as soon as it is no longer needed: when the response is ready, and when the future is dropped. While
//! a request waits for a limiter or a bulkhead of the pipeline, it keeps its reservation.
//!
//! **Errors.** The inner service fails with `E`, and the outer service with [`Error<E>`](Error). A boxed error, as after a
//! tower buffer or timeout, does not implement `Classify`: use [`PipelineLayer::judge`]. In this case [`Error`] does not
//! implement [`std::error::Error`], because the boxed error does not. Convert it with `ServiceBuilder::map_err`, written
//! before the layer.

mod keyed;
mod attempt;
mod response;
mod spill;

pub use self::keyed::{ByKey, ForRequest};
pub use self::response::ResponseFuture;
pub use self::spill::{SpillFuture, SpillLayer, SpillService};

use crate::classify::Class;
use crate::error::{Error, GiveUpReason, Refused};
use crate::pipeline::Pipeline;
use crate::retry::{ByClassify, ByJudge, Judge};
use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

impl Pipeline {
    /// Creates a tower layer of these policies. See the module [`tower`](crate::tower).
    pub fn layer(&self) -> PipelineLayer {
        PipelineLayer { pipeline: self.clone(), judge: ByClassify }
    }
}

/// Applies the policies of a [`Pipeline`] to services. Created by [`Pipeline::layer`].
///
/// Clones, and all services that it creates, share the state of those policies.
///
/// Errors are classified by [`Classify`](crate::Classify). For errors that do not implement it, and for responses that are
/// failures, use [`judge`](PipelineLayer::judge).
///
/// ```
/// use rewheel::{Pipeline, Retry, millis};
/// use std::io;
/// use tower::{Layer, Service, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let layer = Pipeline::new().retry(Retry::fixed(millis(1)).attempts_max(3)).layer();
/// let mut down = layer.layer(service_fn(|_: u32| async {
///     Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused))
/// }));
///
/// let error = down.ready().await.unwrap().call(7).await.unwrap_err();
/// assert_eq!(error.attempts(), 3);
/// # }
/// ```
#[derive(Clone)]
pub struct PipelineLayer<J = ByClassify, P = Pipeline> {
    pipeline: P,
    judge: J,
}

impl<J, P> PipelineLayer<J, P> {
    /// Classifies each result by a closure: for responses that are failures, such as an HTTP 503, and for errors of other crates.
    /// If the last attempt ends with a response that was judged a failure, that response is returned.
    ///
    /// The layer does not know its service yet, so the closure has to name the types that it classifies.
    ///
    /// ```
    /// use rewheel::{Category, Class, Pipeline, Retry, millis};
    /// use std::convert::Infallible;
    /// use std::time::SystemTime;
    ///
    /// struct Response { status: u16, retry_after: Option<&'static str> }
    ///
    /// let layer = Pipeline::new().retry(Retry::exponential(millis(100))).layer().judge(
    ///     |result: &Result<Response, Infallible>| match result {
    ///         Ok(r) => Class::of_response(r.status, r.retry_after, SystemTime::now()),
    ///         Err(_) => Class::stop(Category::Unknown),
    ///     },
    /// );
    /// # let _ = tower::ServiceBuilder::new().layer(layer);
    /// ```
    #[must_use]
    pub fn judge<T, E, N>(self, judge: N) -> PipelineLayer<ByJudge<N>, P>
    where
        N: Fn(&Result<T, E>) -> Class + Clone,
    {
        PipelineLayer { pipeline: self.pipeline, judge: ByJudge(judge) }
    }
}

impl<S, J: Clone, P: Clone> Layer<S> for PipelineLayer<J, P> {
    type Service = PipelineService<S, J, P>;

    fn layer(&self, inner: S) -> PipelineService<S, J, P> {
        PipelineService { inner, pipeline: self.pipeline.clone(), judge: self.judge.clone() }
    }
}

impl<J, P: fmt::Debug> fmt::Debug for PipelineLayer<J, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineLayer").field("pipeline", &self.pipeline).finish_non_exhaustive()
    }
}

/// A service under the policies of a [`Pipeline`]. Created by [`PipelineLayer`].
///
/// It is ready when the inner service is ready. If the inner service does not become ready, the error is returned without
/// another attempt, because there is no request yet that could be repeated.
#[derive(Clone)]
pub struct PipelineService<S, J = ByClassify, P = Pipeline> {
    inner: S,
    pipeline: P,
    judge: J,
}

impl<S, Req, J, P> Service<Req> for PipelineService<S, J, P>
where
    S: Service<Req> + Clone,
    Req: Clone,
    J: Judge<S::Response, S::Error> + Clone,
    P: ForRequest<Req>,
{
    type Response = S::Response;
    type Error = Error<S::Error>;
    type Future = ResponseFuture<S, Req, J, P::Policies>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(|error| {
            Error::new(Refused::new(GiveUpReason::Stopped, None), 0, Duration::ZERO, Some(error))
        })
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        let policies = self.pipeline.policies(&request);
        // Readiness belongs to the instance that was polled; a clone has reserved nothing.
        let fresh = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, fresh);
        ResponseFuture::new(policies, ready, request, self.judge.clone())
    }
}

impl<S: fmt::Debug, J, P: fmt::Debug> fmt::Debug for PipelineService<S, J, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineService")
            .field("inner", &self.inner)
            .field("pipeline", &self.pipeline)
            .finish_non_exhaustive()
    }
}
