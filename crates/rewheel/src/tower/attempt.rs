//! Makes the attempts of one request.

use crate::retry::Attempt;
use crate::retry::marker::Invoke;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tower_service::Service;

/// The operation of a pipeline around a service.
pub(super) struct Repeat<S, Req> {
    service: S,
    request: Req,
    /// Whether `service` has been ready, and was not called since.
    is_ready: bool,
}

impl<S, Req> Repeat<S, Req> {
    /// Takes a service that is ready.
    #[inline]
    pub(super) fn new(service: S, request: Req) -> Repeat<S, Req> {
        Repeat { service, request, is_ready: true }
    }
}

impl<S, Req> Invoke<Attempt, AttemptFuture<S, Req>> for Repeat<S, Req>
where
    S: Service<Req> + Clone,
    Req: Clone,
{
    #[inline]
    fn invoke(&mut self, _: Attempt) -> AttemptFuture<S, Req> {
        let request = self.request.clone();
        if std::mem::take(&mut self.is_ready) {
            return AttemptFuture::Calling { call: self.service.call(request) };
        }
        // The attempt owns its clone, so that a reservation ends with the attempt that made it.
        AttemptFuture::Waiting { service: self.service.clone(), request }
    }
}

pin_project! {
    /// One attempt: waits until the service is ready, then calls it.
    #[project = AttemptProjection]
    #[project_replace = AttemptReplaced]
    pub(super) enum AttemptFuture<S, Req>
    where
        S: Service<Req>,
    {
        Waiting { service: S, request: Req },
        Calling { #[pin] call: S::Future },
        // Only between the other two states, unless the service panics there.
        Taken,
    }
}

impl<S: Service<Req>, Req> Future for AttemptFuture<S, Req> {
    type Output = Result<S::Response, S::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.as_mut().project() {
            AttemptProjection::Calling { call } => return call.poll(cx),
            AttemptProjection::Waiting { service, .. } => ready!(service.poll_ready(cx))?,
            AttemptProjection::Taken => {}
        }
        let taken = self.as_mut().project_replace(AttemptFuture::Taken);
        let AttemptReplaced::Waiting { mut service, request } = taken else {
            panic!("an attempt that panicked was polled again");
        };
        let call = service.call(request);
        // The service's resources are not needed during the call.
        drop(service);
        self.set(AttemptFuture::Calling { call });
        self.poll(cx)
    }
}
