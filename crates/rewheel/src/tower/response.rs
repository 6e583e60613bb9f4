//! The response future of a service inside a pipeline.

use super::attempt::{AttemptFuture, Repeat};
use crate::error::Error;
use crate::pipeline::{InPipeline, Pipeline, Policies, Run};
use crate::retry::{ByClassify, FailedCall, HasHooks, Judge, NoteGiveUp};
use pin_project_lite::pin_project;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tower_service::Service;

type Running<S, Req, J, P> =
    Run<P, Repeat<S, Req>, AttemptFuture<S, Req>, <S as Service<Req>>::Error, J, NoteGiveUp<()>>;

pin_project! {
    /// The future of [`PipelineService`](super::PipelineService). Does not allocate.
    ///
    /// Cancel safe: dropping it drops the running attempt, releases permits, slots and the
    /// reservation of the inner service, and leaves every queue.
    #[must_use = "a future does nothing until it is awaited"]
    pub struct ResponseFuture<S, Req, J = ByClassify, P = Pipeline>
    where
        S: Service<Req>,
        P: Policies,
    {
        // `None` once it is done: the owner may keep the future, but a refused request must release
        // its unused reservation.
        #[pin]
        run: Option<Running<S, Req, J, P>>,
        failed: Option<FailedCall>,
    }
}

impl<S: Service<Req>, Req, J, P: Policies> ResponseFuture<S, Req, J, P> {
    #[inline]
    pub(super) fn new(policies: P, ready: S, request: Req, judge: J) -> Self {
        let repeat = Repeat::new(ready, request);
        let run = Run::new(InPipeline::new(policies), repeat, judge, NoteGiveUp::new(()));
        ResponseFuture { run: Some(run), failed: None }
    }

    /// Returns why a request was given up that a job should continue, also if it has a response.
    pub(super) const fn failed(&self) -> Option<FailedCall> {
        self.failed
    }
}

impl<S, Req, J, P> Future for ResponseFuture<S, Req, J, P>
where
    S: Service<Req> + Clone,
    Req: Clone,
    J: Judge<S::Response, S::Error>,
    P: Policies,
{
    type Output = Result<S::Response, Error<S::Error>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut run = this.run;
        let running = run.as_mut().as_pin_mut().expect("polled after it was done");
        let result = ready!(running.poll(cx));
        *this.failed = run.as_ref().get_ref().as_ref().and_then(|run| run.hooks().failed());
        run.set(None);
        Poll::Ready(result)
    }
}

impl<S: Service<Req>, Req, J, P: Policies> fmt::Debug for ResponseFuture<S, Req, J, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("run", &self.run).finish()
    }
}
