//! Client throttle: rejects calls locally while the dependency rejects many.

mod window;
mod checked;
mod keyed;

pub use self::keyed::KeyedClientThrottle;

use self::window::Window;
use crate::breaker::Outcome;
use crate::classify::Classify;
use crate::clock::{Clock, Moment};
use crate::duration::nanos;
use crate::error::{Error, GiveUpReason, Refused};
use crate::limiter::gcra::Gcra;
use crate::observer::{Observer, refused};
use crate::random::Random;
use crate::setting::valid;
use crate::sync::{Mutex, lock_soon};
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The adaptive throttling of Google's SRE book. Clones share its state: create one per dependency, and keep it.
///
/// It counts the calls of the last 30 seconds, and those that the dependency accepted. A call is rejected locally with the
/// probability `max(0, (requests - K x accepts) / (requests + 1))`. So requests stay below `K` times the accepts: an overloaded
/// dependency does not spend its time on rejecting calls. Unlike a circuit breaker, it never stops all calls.
///
/// A locally rejected call counts as a request. Timeouts, `429`, `503` and other failures of the dependency are not accepted;
/// a permanent error such as `404` is. A call that was cancelled, or that another policy of this process refused, does not count.
///
/// ```
/// use rewheel::{ClientThrottle, GiveUpReason};
/// use std::io;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let search = ClientThrottle::accepts_times(2.0).floor_per_second(0).named("search").build();
/// # async fn query() -> io::Result<u32> { Err(io::ErrorKind::ConnectionRefused.into()) }
/// let mut rejected = 0;
/// for _ in 0..200 {
///     let error = search.call(|| query()).await.unwrap_err();
///     rejected += u32::from(error.reason() == GiveUpReason::ClientThrottled);
/// }
/// assert!(rejected > 150, "{rejected}");
/// # }
/// ```
///
/// A rejection is not retried, because each retry would count as a request.
#[derive(Clone, Debug)]
pub struct ClientThrottle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    window: Mutex<Window>,
    floor: Option<Gcra>,
    config: ClientThrottleBuilder,
}

/// A request that was counted. Its owner must [record](ClientThrottle::record) it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    at: Moment,
}

impl ClientThrottle {
    /// Sets `K`: how many times the accepts the requests may be. The SRE book recommends 2. With less, more calls are rejected
    /// locally; with more, more of them load the dependency.
    ///
    /// ```compile_fail
    /// # use rewheel::{ClientThrottle, ClientThrottleBuilder};
    /// const WRONG: ClientThrottleBuilder = ClientThrottle::accepts_times(0.5);
    /// # let _ = WRONG;
    /// ```
    ///
    /// # Panics
    /// Panics if the factor is not 1 to 1000; in a constant that is a compile error.
    #[track_caller]
    pub const fn accepts_times(factor: f64) -> ClientThrottleBuilder {
        ClientThrottleBuilder::new(valid(checked::factor(factor)))
    }

    /// Asks whether a call may be made, and counts it as a request.
    ///
    /// # Errors
    /// Refused with the probability that keeps requests below `K` times the accepts.
    pub fn acquire(&self) -> Result<ThrottlePermit, Refused> {
        let counted = self.enter()?;
        Ok(ThrottlePermit { throttle: self.clone(), counted: Some(counted) })
    }

    /// Makes a call unless it is rejected, and records whether the dependency accepted it.
    ///
    /// Cancel safe: a dropped call does not count.
    ///
    /// # Errors
    /// Returns the call's own error as `last`, or the refusal.
    pub async fn call<F, Fut, T, E>(&self, operation: F) -> Result<T, Error<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: Classify,
    {
        let permit = self.acquire()?;
        let result = operation().await;
        permit.record(&result);
        result.map_err(Error::once)
    }

    /// Like [`call`](ClientThrottle::call), for a blocking operation.
    ///
    /// # Errors
    /// Returns the call's own error as `last`, or the refusal.
    pub fn call_blocking<T, E: Classify>(
        &self,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Error<E>> {
        let permit = self.acquire()?;
        let result = operation();
        permit.record(&result);
        result.map_err(Error::once)
    }

    /// Returns the probability, from 0 to 1, with which the next call is rejected.
    pub fn rejects(&self) -> f64 {
        let config = &self.shared.config;
        let (requests, accepts) = lock_soon(&self.shared.window).counts(config.clock.now());
        excess(requests, accepts, config.factor) as f64 / FACTOR_ONE as f64 / (requests + 1) as f64
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    pub(crate) fn enter(&self) -> Result<Counted, Refused> {
        let Shared { window, config, .. } = &*self.shared;
        let at = config.clock.now();
        let mut window = lock_soon(window);
        let (requests, accepts) = window.counts(at);
        // Before the call: one that hangs is a request, too.
        window.request(at);
        drop(window);
        let excess = excess(requests, accepts, config.factor);
        if excess == 0 {
            return Ok(Counted { at });
        }
        self.reject_at_random(at, excess, requests)
    }

    #[cold]
    fn reject_at_random(&self, at: Moment, excess: u64, requests: u64) -> Result<Counted, Refused> {
        let Shared { config, floor, .. } = &*self.shared;
        let drawn = config.random.between(1, (requests + 1) * FACTOR_ONE);
        if drawn > excess || floor.as_ref().is_some_and(|floor| floor.take(1, at).is_ok()) {
            return Ok(Counted { at });
        }
        let refusal = Refused::new(GiveUpReason::ClientThrottled, None);
        Err(refused(config.observer.as_ref(), &config.name, refusal))
    }

    /// Counts an accept if the dependency accepted the call. A call that says nothing about the dependency is no request.
    pub(crate) fn record(&self, counted: Counted, outcome: Option<Outcome>) {
        match outcome {
            Some(Outcome::Failure) => {}
            Some(Outcome::Success) => {
                let now = self.shared.config.clock.now();
                lock_soon(&self.shared.window).accept(now);
            }
            None => lock_soon(&self.shared.window).forget(counted.at),
        }
    }

    pub(crate) fn describe(&self) -> String {
        self.shared.config.to_string()
    }
}

/// In this unit, a factor is an integer.
const FACTOR_ONE: u64 = 1_000;

/// Returns by how much the requests are above `K` times the accepts, in thousandths.
const fn excess(requests: u64, accepts: u64, factor: u64) -> u64 {
    (requests * FACTOR_ONE).saturating_sub(accepts.saturating_mul(factor))
}

/// The permit for one call, which must report its result. If it is dropped without a report, the call does not count.
#[must_use = "record the result: if a permit is dropped without a record, the call does not count"]
#[derive(Debug)]
pub struct ThrottlePermit {
    throttle: ClientThrottle,
    counted: Option<Counted>,
}

impl ThrottlePermit {
    /// Classifies a result, and records whether the dependency accepted the call.
    pub fn record<T, E: Classify>(self, result: &Result<T, E>) {
        self.finish(Outcome::of(result));
    }

    /// Records that the dependency accepted the call.
    pub fn accepted(self) {
        self.finish(Some(Outcome::Success));
    }

    /// Records that the dependency did not accept the call.
    pub fn rejected(self) {
        self.finish(Some(Outcome::Failure));
    }

    fn finish(mut self, outcome: Option<Outcome>) {
        if let Some(counted) = self.counted.take() {
            self.throttle.record(counted, outcome);
        }
    }
}

impl Drop for ThrottlePermit {
    fn drop(&mut self) {
        if let Some(counted) = self.counted.take() {
            self.throttle.record(counted, None);
        }
    }
}

/// Builder of a [`ClientThrottle`].
#[derive(Clone, Debug)]
pub struct ClientThrottleBuilder {
    /// In thousandths.
    factor: u64,
    window: Duration,
    floor: u32,
    name: Cow<'static, str>,
    clock: Clock,
    random: Random,
    observer: Option<Arc<dyn Observer>>,
}

impl ClientThrottleBuilder {
    const fn new(factor: u64) -> ClientThrottleBuilder {
        ClientThrottleBuilder {
            factor,
            window: Duration::from_secs(30),
            floor: 1,
            name: Cow::Borrowed(""),
            clock: Clock::system(),
            random: Random::thread(),
            observer: None,
        }
    }

    /// Sets the period in which calls count. The default is 30 seconds; the SRE book uses two minutes. It must be longer than the
    /// slowest call. After an outage that was longer than the window, the number of calls that pass doubles about once per window,
    /// so a short window recovers faster.
    ///
    /// # Panics
    /// Panics if the period is below a second or above a day; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn window(mut self, length: Duration) -> ClientThrottleBuilder {
        self.window = valid(checked::window(length));
        self
    }

    /// Sets how many calls per second are never rejected. The default is one: if all calls fail for minutes, the probability is so
    /// close to one that without a floor no call would find out that the dependency works again.
    ///
    /// # Panics
    /// Panics if the number is more than a million; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn floor_per_second(mut self, calls: u32) -> ClientThrottleBuilder {
        self.floor = valid(checked::floor(calls));
        self
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> ClientThrottleBuilder {
        self.name = name.into();
        self
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> ClientThrottleBuilder {
        self.clock = clock.into();
        self
    }

    /// Uses this random source to choose the calls that are rejected.
    #[must_use]
    pub fn random(mut self, random: &Random) -> ClientThrottleBuilder {
        self.random = random.clone();
        self
    }

    /// Reports rejections to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> ClientThrottleBuilder {
        self.observer = Some(observer);
        self
    }

    /// Creates the throttle without any counts.
    pub fn build(self) -> ClientThrottle {
        let interval = nanos(Duration::from_secs(1)).div_ceil(u64::from(self.floor.max(1)));
        let floor = (self.floor > 0).then(|| {
            let resolution = nanos(self.clock.resolution());
            Gcra::new(interval, u64::from(self.floor)).with_resolution(resolution)
        });
        let window = Mutex::new(Window::new(self.window));
        ClientThrottle { shared: Arc::new(Shared { window, floor, config: self }) }
    }
}

impl std::fmt::Display for ClientThrottleBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = self.factor as f64 / FACTOR_ONE as f64;
        let window = crate::duration::text(self.window);
        write!(f, "requests are at most {times} times the accepts of {window}")?;
        if self.floor > 0 {
            write!(f, ", but {} per 1s always pass", self.floor)?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
