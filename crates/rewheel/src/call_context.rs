//! What a caller tells the service that it calls: the attempt, the deadline, and who retries.

mod time;

use crate::nesting::Inside;
use pin_project_lite::pin_project;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

thread_local! {
    /// The context of the request that this thread works on.
    static CURRENT: Cell<Option<CallContext>> = const { Cell::new(None) };
}

/// Who repeats a call that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Retries {
    /// The caller makes no further attempt, so the called service may retry its own calls. The default.
    #[default]
    Callee,
    /// The caller, or the caller of the caller, repeats the call. Retries further down would multiply the number of calls.
    Caller,
    /// The retry budget of the caller is empty: no service should retry.
    Exhausted,
}

impl Retries {
    /// Returns the value of the header `rewheel-retry`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Retries::Callee => "callee",
            Retries::Caller => "caller",
            Retries::Exhausted => "exhausted",
        }
    }

    fn parse(text: &str) -> Option<Retries> {
        [Retries::Callee, Retries::Caller, Retries::Exhausted]
            .into_iter()
            .find(|retries| retries.as_str() == text)
    }

    /// Returns whether retries of the called service are suppressed.
    pub const fn suppresses(self) -> bool {
        match self {
            Retries::Callee => false,
            Retries::Caller | Retries::Exhausted => true,
        }
    }
}

impl fmt::Display for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a caller tells the service that it calls, in three headers.
///
/// | header | value |
/// | --- | --- |
/// | `rewheel-attempt` | number of the attempt, from 1 |
/// | `rewheel-deadline` | when the caller stops waiting: `2026-11-18T21:03:04.250Z`, always UTC |
/// | `rewheel-retry` | `callee`, `caller` or `exhausted`: who repeats the call if it fails, see [`Retries`] |
///
/// The client of the feature `reqwest`, the channel of the feature `tonic` and the callbacks of the engine send them. The layer
/// `CallContextLayer` (feature `http`) reads them: see [`scope`](CallContext::scope) for its effect.
///
/// ```
/// use rewheel::{CallContext, Retries, seconds};
/// use std::time::SystemTime;
///
/// let headers = [("rewheel-attempt", "2"), ("rewheel-retry", "caller")];
/// let context = CallContext::parse(|name| {
///     headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
/// });
/// assert_eq!(context, Some(CallContext::new(2, Retries::Caller)));
/// assert_eq!(context.unwrap().time_left(SystemTime::UNIX_EPOCH), None, "no deadline");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallContext {
    attempt: u32,
    deadline: Option<SystemTime>,
    retries: Retries,
}

impl CallContext {
    /// Name of the header with the number of the attempt.
    pub const ATTEMPT: &'static str = "rewheel-attempt";
    /// Name of the header with the deadline.
    pub const DEADLINE: &'static str = "rewheel-deadline";
    /// Name of the header that says who retries.
    pub const RETRY: &'static str = "rewheel-retry";

    /// Creates a context without a deadline. An attempt of 0 becomes 1.
    pub const fn new(attempt: u32, retries: Retries) -> CallContext {
        let attempt = if attempt == 0 { 1 } else { attempt };
        CallContext { attempt, deadline: None, retries }
    }

    /// Sets when the caller stops waiting.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: SystemTime) -> CallContext {
        self.deadline = Some(deadline);
        self
    }

    /// Returns the number of the attempt, from 1.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns when the caller stops waiting, by the clock of the caller.
    pub const fn deadline(&self) -> Option<SystemTime> {
        self.deadline
    }

    /// Returns who repeats the call if it fails.
    pub const fn retries(&self) -> Retries {
        self.retries
    }

    /// Returns how long the caller still waits: zero if the deadline has passed, `None` without a deadline.
    pub fn time_left(&self, now: SystemTime) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.duration_since(now).unwrap_or(Duration::ZERO))
    }

    /// Reads the headers of a request; `header` returns the value of a header. Returns `None` if the request has none of them.
    ///
    /// An invalid value is ignored, as if the header were absent: a client with a bug must still get an answer.
    pub fn parse<'a>(header: impl Fn(&'static str) -> Option<&'a str>) -> Option<CallContext> {
        let attempt = header(CallContext::ATTEMPT).and_then(|text| text.trim().parse().ok());
        let attempt = attempt.filter(|attempt| *attempt > 0);
        let deadline = header(CallContext::DEADLINE).and_then(|text| time::parse(text.trim()));
        let retries = header(CallContext::RETRY).and_then(|text| Retries::parse(text.trim()));
        if attempt.is_none() && deadline.is_none() && retries.is_none() {
            return None;
        }
        let (attempt, retries) = (attempt.unwrap_or(1), retries.unwrap_or_default());
        Some(CallContext { attempt, deadline, retries })
    }

    /// Returns the headers for a request: names in lower case, values of visible ASCII characters.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let deadline = self.deadline.and_then(time::format);
        [
            Some((CallContext::ATTEMPT, self.attempt.to_string())),
            deadline.map(|deadline| (CallContext::DEADLINE, deadline)),
            Some((CallContext::RETRY, self.retries.as_str().to_owned())),
        ]
        .into_iter()
        .flatten()
    }

    /// Returns the context of the request that this code works on: of the innermost [`scope`](CallContext::scope) around it.
    pub fn current() -> Option<CallContext> {
        CURRENT.get()
    }

    /// Runs a future as work for this caller. Calls that it makes pass the deadline on, and if the caller retries, every
    /// retry inside makes one attempt, as inside an outer retry.
    ///
    /// Work that the future passes to another task or thread is not part of it. To include a task, read
    /// [`current`](CallContext::current) before the task is spawned, and use `scope` in it.
    ///
    /// ```
    /// use rewheel::{CallContext, Retries, Retry, Retryable, millis};
    /// use std::io;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let work = (|| async { Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)) })
    ///     .retry(Retry::fixed(millis(1)).attempts_max(3));
    /// let error = CallContext::new(1, Retries::Caller).scope(work.into_future()).await.unwrap_err();
    /// assert_eq!(error.attempts(), 1, "the caller repeats it");
    /// # }
    /// ```
    pub const fn scope<F: Future>(self, future: F) -> InContext<F> {
        InContext { context: self, future }
    }

    /// Returns what an attempt of a call tells its callee. `repeats` is whether the policies of the call may repeat it.
    #[cfg(any(feature = "reqwest", feature = "http"))]
    pub(crate) fn of_attempt(
        attempt: crate::retry::Attempt,
        repeats: Retries,
        now: SystemTime,
    ) -> CallContext {
        let current = CallContext::current();
        let own = attempt.time_left().and_then(|left| now.checked_add(left));
        let outer = current.and_then(|context| context.deadline);
        let deadline = own.into_iter().chain(outer).min();
        CallContext { attempt: attempt.number(), deadline, retries: repeats }
    }
}

impl Retries {
    /// Returns who repeats a call that this code makes: `repeats` is whether its own policies do, and `has_budget` whether
    /// their retry budget allows a retry.
    #[cfg(any(feature = "reqwest", feature = "http"))]
    pub(crate) fn of_call(repeats: bool, has_budget: bool) -> Retries {
        let outer = CallContext::current().map_or(Retries::Callee, |context| context.retries);
        match outer {
            // An outer caller repeats it, or none does: policies of this process make one attempt.
            Retries::Caller | Retries::Exhausted => outer,
            Retries::Callee if Inside::is_marked() => Retries::Caller,
            Retries::Callee if repeats && has_budget => Retries::Caller,
            Retries::Callee if repeats => Retries::Exhausted,
            Retries::Callee => Retries::Callee,
        }
    }
}

/// Returns the time, for the deadlines that services tell each other: they share no other clock.
#[cfg(any(feature = "reqwest", feature = "http"))]
#[expect(clippy::disallowed_methods, reason = "the headers contain times of the calendar")]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

pin_project! {
    /// The future of [`CallContext::scope`].
    #[derive(Debug)]
    #[must_use = "a future does nothing until it is awaited"]
    pub struct InContext<F> {
        context: CallContext,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for InContext<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _inside = Inside::enter_if(this.context.retries.suppresses());
        let _current = Current(CURRENT.replace(Some(*this.context)));
        this.future.poll(cx)
    }
}

/// Restores the context of before, also after a panic.
struct Current(Option<CallContext>);

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
