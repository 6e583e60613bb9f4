//! A service that returns scripted responses.

use rewheel::{ManualClock, Pipeline};
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use tower::Service;

/// Only retries, on a manual clock.
pub(crate) fn retrying(clock: &ManualClock, attempts_max: u32) -> Pipeline {
    Pipeline::new().retry(super::steady(attempts_max)).clock(clock)
}

pub(crate) fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Ok(u16),
    Err(ErrorKind),
    Hang,
}

/// What happened, and to which instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Ready(usize),
    Called(usize),
}

/// State that all instances of a service share.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Mutex<BreakerState>>);

#[derive(Default)]
struct BreakerState {
    answers: VecDeque<Answer>,
    /// The result of each readiness check; always `Ok` when it is used up.
    readiness: VecDeque<Result<(), ErrorKind>>,
    requests: Vec<u32>,
    seen: Vec<Seen>,
    instances: usize,
    when_a_call_ends: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Script {
    pub(crate) fn answers(answers: impl IntoIterator<Item = Answer>) -> Script {
        let script = Script::default();
        script.state().answers.extend(answers);
        script
    }

    pub(crate) fn readiness(
        self,
        readiness: impl IntoIterator<Item = Result<(), ErrorKind>>,
    ) -> Script {
        self.state().readiness.extend(readiness);
        self
    }

    /// Calls a closure whenever a call ends.
    pub(crate) fn when_a_call_ends<T: Send + 'static>(
        &self,
        look: impl Fn() -> T + Send + Sync + 'static,
    ) -> Arc<Mutex<Vec<T>>> {
        let log = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&log);
        self.state().when_a_call_ends = Some(Arc::new(move || kept.lock().unwrap().push(look())));
        log
    }

    pub(crate) fn service(&self) -> Scripted {
        let mut state = self.state();
        state.instances += 1;
        Scripted { script: self.clone(), instance: state.instances, is_ready: false }
    }

    pub(crate) fn requests(&self) -> Vec<u32> {
        self.state().requests.clone()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.0.lock().unwrap()
    }
}

/// Each clone is a separate instance, and has to become ready itself.
pub(crate) struct Scripted {
    script: Script,
    instance: usize,
    is_ready: bool,
}

impl Clone for Scripted {
    fn clone(&self) -> Scripted {
        self.script.service()
    }
}

impl Service<u32> for Scripted {
    type Response = u16;
    type Error = io::Error;
    type Future = Call;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.script.state();
        if let Some(Err(kind)) = state.readiness.pop_front() {
            return Poll::Ready(Err(kind.into()));
        }
        self.is_ready = true;
        state.seen.push(Seen::Ready(self.instance));
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u32) -> Call {
        assert!(std::mem::take(&mut self.is_ready), "called without having been ready");
        let mut state = self.script.state();
        state.requests.push(request);
        state.seen.push(Seen::Called(self.instance));
        let answer = state.answers.pop_front().expect("called more often than the script says");
        Call { answer, when_it_ends: state.when_a_call_ends.clone() }
    }
}

pub(crate) struct Call {
    answer: Answer,
    when_it_ends: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Future for Call {
    type Output = io::Result<u16>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u16>> {
        match self.answer {
            Answer::Ok(status) => Poll::Ready(Ok(status)),
            Answer::Err(kind) => Poll::Ready(Err(kind.into())),
            Answer::Hang => Poll::Pending,
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(when_it_ends) = &self.when_it_ends {
            when_it_ends();
        }
    }
}
