//! Continues requests that were given up as durable jobs.

use super::{ForRequest, PipelineLayer, PipelineService, ResponseFuture};
use crate::error::Error;
use crate::pipeline::{Pipeline, Policies};
use crate::retry::{Judge, Spill, SpillError, SpillOutcome};
use pin_project_lite::pin_project;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tower_layer::Layer;
use tower_service::Service;

impl<J, P> PipelineLayer<J, P> {
    /// If a request is given up, stores it as a durable job. The closure `job` creates the job of a
    /// request. A response is then [`SpillOutcome::Done`] or [`SpillOutcome::Spilled`].
    ///
    /// ```
    /// use rewheel::{SpillOutcome, FailedCall, Pipeline, Retry, Spill, millis};
    /// use std::io;
    /// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
    ///
    /// /// Stands for the durable engine.
    /// #[derive(Clone)]
    /// struct Later;
    ///
    /// impl Spill<String> for Later {
    ///     type Receipt = (String, u32);
    ///     type Error = io::Error;
    ///
    ///     async fn spill(&self, job: String, failed: FailedCall) -> io::Result<(String, u32)> {
    ///         Ok((job, failed.attempts))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let policies = Pipeline::new().retry(Retry::exponential(millis(1)).attempts_max(2));
    /// let layer = policies.layer().or_spill_to(Later, |order: u64| format!("charge order {order}"));
    /// let mut charge = ServiceBuilder::new().layer(layer).service(service_fn(|_: u64| async {
    ///     Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut))
    /// }));
    ///
    /// let answer = charge.ready().await.unwrap().call(17).await.unwrap();
    /// assert_eq!(answer, SpillOutcome::Spilled(("charge order 17".to_owned(), 2)));
    /// # }
    /// ```
    pub fn or_spill_to<D, M>(self, spill: D, job: M) -> SpillLayer<J, D, M, P> {
        SpillLayer { layer: self, spill, job }
    }
}

/// A [`PipelineLayer`] that stores requests as durable jobs if they are given up. Created by [`PipelineLayer::or_spill_to`].
#[derive(Clone)]
pub struct SpillLayer<J, D, M, P = Pipeline> {
    layer: PipelineLayer<J, P>,
    spill: D,
    job: M,
}

impl<S, J: Clone, D: Clone, M: Clone, P: Clone> Layer<S> for SpillLayer<J, D, M, P> {
    type Service = SpillService<S, J, D, M, P>;

    fn layer(&self, inner: S) -> SpillService<S, J, D, M, P> {
        let (spill, job) = (self.spill.clone(), self.job.clone());
        SpillService { service: self.layer.layer(inner), spill, job }
    }
}

impl<J, D, M, P: fmt::Debug> fmt::Debug for SpillLayer<J, D, M, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillLayer").field("layer", &self.layer).finish_non_exhaustive()
    }
}

/// A [`PipelineService`] that stores requests as durable jobs if they are given up. Created by [`SpillLayer`].
#[derive(Clone)]
pub struct SpillService<S, J, D, M, P = Pipeline> {
    service: PipelineService<S, J, P>,
    spill: D,
    job: M,
}

impl<S, Req, J, D, M, W, P> Service<Req> for SpillService<S, J, D, M, P>
where
    S: Service<Req> + Clone,
    Req: Clone,
    J: Judge<S::Response, S::Error> + Clone,
    D: Spill<W> + Clone + Send + Sync + 'static,
    M: Fn(Req) -> W + Clone,
    W: Send + 'static,
    P: ForRequest<Req>,
{
    type Response = SpillOutcome<S::Response, D::Receipt>;
    type Error = SpillError<S::Error, D::Error>;
    type Future = SpillFuture<S, Req, J, D, M, D::Receipt, D::Error, P::Policies>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(cx).map_err(|call| SpillError { call, spill: None })
    }

    fn call(&mut self, request: Req) -> Self::Future {
        SpillFuture {
            call: self.service.call(request.clone()),
            request: Some(request),
            spill: self.spill.clone(),
            job: self.job.clone(),
            spilling: None,
        }
    }
}

impl<S: fmt::Debug, J, D, M, P: fmt::Debug> fmt::Debug for SpillService<S, J, D, M, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillService").field("service", &self.service).finish_non_exhaustive()
    }
}

/// A request on its way to be handed over, and why it was given up.
struct Spilling<E, R, X> {
    call: Option<Error<E>>,
    // Boxed, since it has no name; only requests that were given up pay for it.
    future: Pin<Box<dyn Future<Output = Result<R, X>> + Send>>,
}

pin_project! {
    /// The future of [`SpillService`]. It allocates memory only when it stores a request as a job.
    ///
    /// If the future is dropped while it stores a request, it is unknown whether the job was stored.
    #[must_use = "a future does nothing until it is awaited"]
    pub struct SpillFuture<S, Req, J, D, M, R, X, P = Pipeline>
    where
        S: Service<Req>,
        P: Policies,
    {
        #[pin]
        call: ResponseFuture<S, Req, J, P>,
        request: Option<Req>,
        spill: D,
        job: M,
        spilling: Option<Spilling<S::Error, R, X>>,
    }
}

impl<S, Req, J, D, M, W, P> Future for SpillFuture<S, Req, J, D, M, D::Receipt, D::Error, P>
where
    S: Service<Req> + Clone,
    Req: Clone,
    J: Judge<S::Response, S::Error>,
    D: Spill<W> + Clone + Send + Sync + 'static,
    M: Fn(Req) -> W,
    W: Send + 'static,
    P: Policies,
{
    type Output = Result<SpillOutcome<S::Response, D::Receipt>, SpillError<S::Error, D::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let spilling = match this.spilling {
            Some(spilling) => spilling,
            None => {
                let result = ready!(this.call.as_mut().poll(cx));
                let failed = this.call.failed();
                let call = match (result, failed) {
                    (Ok(response), None) => {
                        return Poll::Ready(Ok(SpillOutcome::Done(response)));
                    }
                    (Ok(_), Some(failed)) => failed.to_error(),
                    (Err(call), _) => call,
                };
                let (Some(failed), Some(request)) = (failed, this.request.take()) else {
                    return Poll::Ready(Err(SpillError { call, spill: None }));
                };
                let (spill, job) = (this.spill.clone(), (this.job)(request));
                let future = Box::pin(async move { spill.spill(job, failed).await });
                this.spilling.insert(Spilling { call: Some(call), future })
            }
        };
        let result = ready!(spilling.future.as_mut().poll(cx));
        let call = spilling.call.take().expect("polled after it was done");
        Poll::Ready(match result {
            Ok(receipt) => Ok(SpillOutcome::Spilled(receipt)),
            Err(why) => Err(SpillError { call, spill: Some(why) }),
        })
    }
}

impl<S, Req, J, D, M, R, X, P> fmt::Debug for SpillFuture<S, Req, J, D, M, R, X, P>
where
    S: Service<Req>,
    P: Policies,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillFuture").field("call", &self.call).finish_non_exhaustive()
    }
}
