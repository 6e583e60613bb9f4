//! Rate limiter: limits the number of calls per period.

pub(crate) mod gcra;
mod sliding;
mod waiting;
mod keyed;
mod keyed_waiting;
mod checked;

pub use self::keyed::KeyedRateLimiter;
pub(crate) use self::waiting::{Admission, Waiting};

use self::gcra::{Bucket, Gcra};
use self::sliding::{Limit, Sliding};
use crate::clock::{Clock, Moment};
use crate::duration::nanos;
use crate::error::{GiveUpReason, Refused};
use crate::observer::{Observer, refused};
use crate::queue::Queue;
use crate::setting::valid;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// A rate limiter. Clones share its state: create one per limit, and keep it.
///
/// A token bucket admits a burst at once and then the rate; a sliding window admits a number of
/// calls in any period of its length. Neither ever admits more calls than the limit, with any
/// number of threads. If the clock is read late or has a coarse resolution, the limiter may admit fewer calls.
///
/// ```
/// use rewheel::{ManualClock, RateLimiter, GiveUpReason, millis};
///
/// let clock = ManualClock::new();
/// let limiter = RateLimiter::per_second(10).burst(2).clock(&clock).build();
///
/// assert!(limiter.check().is_ok() && limiter.check().is_ok());
/// let refused = limiter.check().unwrap_err();
/// assert_eq!((refused.why, refused.retry_in), (GiveUpReason::RateLimited, Some(millis(100))));
///
/// clock.advance(millis(100));
/// assert!(limiter.check().is_ok());
/// assert_eq!(limiter.check_n(3).unwrap_err().why, GiveUpReason::AboveBurst);
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: State,
    /// Number of waiting callers: callers that do not wait must not overtake them.
    waiting: AtomicUsize,
    queue: Mutex<Queue>,
    config: RateLimiterBuilder,
}

#[derive(Debug)]
enum State {
    Bucket(Gcra),
    Window(Mutex<Sliding>),
}

/// The limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Bucket(Bucket),
    Window(Limit),
}

impl Rule {
    /// Returns the maximum number of calls that can be admitted at once.
    const fn burst(&self) -> u64 {
        match self {
            Rule::Bucket(bucket) => bucket.burst(),
            Rule::Window(limit) => limit.calls,
        }
    }
}

impl RateLimiter {
    /// Admits this many calls per second; the default burst is the same number.
    ///
    /// # Panics
    /// Panics if the value is zero or more than a thousand million; in a constant that is a compile error.
    #[track_caller]
    pub const fn per_second(calls: u32) -> RateLimiterBuilder {
        RateLimiter::per(calls, Duration::from_secs(1))
    }

    /// Admits this many calls per period on average, evenly spaced once the burst is used up.
    ///
    /// # Panics
    /// Panics if the number is zero, or more than one per nanosecond, or if the burst takes more than
    /// a century to fill; in a constant that is a compile error.
    #[track_caller]
    pub const fn per(calls: u32, period: Duration) -> RateLimiterBuilder {
        RateLimiterBuilder::new(valid(checked::rate(calls, period)), calls, period)
    }

    /// Admits at most this many calls in any period of this length.
    ///
    /// A call counts for up to 1/32 of the window longer than the window.
    ///
    /// # Panics
    /// Panics if the number is zero, or if the window is below a microsecond; in a constant, that is a
    /// compile error.
    #[track_caller]
    pub const fn sliding_window(calls: u32, window: Duration) -> RateLimiterBuilder {
        RateLimiterBuilder::new(valid(checked::window(calls, window)), calls, window)
    }

    /// Asks for one call to be admitted now.
    ///
    /// # Errors
    /// Refused if the limit is reached, with the time to ask again, and if other callers are
    /// waiting.
    #[inline]
    pub fn check(&self) -> Result<(), Refused> {
        self.check_n(1)
    }

    /// Asks for a call of weight `n` to be admitted now, completely or not at all.
    ///
    /// # Errors
    /// The same as for [`check`](RateLimiter::check). A weight above the burst is always refused.
    // A call costs a tenth of what an admission costs. The path for refused calls is elsewhere.
    #[inline(always)]
    pub fn check_n(&self, n: u32) -> Result<(), Refused> {
        let Shared { state, waiting, config, .. } = &*self.shared;
        if let (State::Bucket(bucket), 0) = (state, waiting.load(Ordering::Relaxed)) {
            return match bucket.take(u64::from(n), config.clock.now_in_place()) {
                Ok(()) => {
                    config.admitted(Duration::ZERO);
                    Ok(())
                }
                Err(wait) => Err(self.refused(refusal(&config.rule, n, wait))),
            };
        }
        self.check_in_turn(n)
    }

    /// Waits until one call is admitted, in order of arrival.
    ///
    /// Cancel safe: a dropped call gives its position to the next caller and uses no tokens.
    ///
    /// # Errors
    /// Refused if the wait exceeds [`wait_max`](RateLimiterBuilder::wait_max), and if too many
    /// callers are waiting.
    pub async fn acquire(&self) -> Result<(), Refused> {
        self.acquire_n(1).await
    }

    /// Like [`acquire`](RateLimiter::acquire), for a call of weight `n`.
    ///
    /// # Errors
    /// The same as for `acquire`. A weight above the burst is always refused.
    pub async fn acquire_n(&self, n: u32) -> Result<(), Refused> {
        waiting::acquire(self, n).await
    }

    /// Returns how many calls [`check`](RateLimiter::check) would admit now: zero while other
    /// callers wait. Another caller may use them before you do.
    ///
    /// ```
    /// use rewheel::{ManualClock, RateLimiter, millis};
    ///
    /// let clock = ManualClock::new();
    /// let limiter = RateLimiter::per_second(10).burst(3).clock(&clock).build();
    /// limiter.check_n(2)?;
    /// assert_eq!(limiter.available(), 1);
    /// clock.advance(millis(100));
    /// assert_eq!(limiter.available(), 2);
    /// # Ok::<_, rewheel::Refused>(())
    /// ```
    pub fn available(&self) -> u32 {
        let Shared { waiting, config, .. } = &*self.shared;
        if waiting.load(Ordering::Relaxed) > 0 {
            return 0;
        }
        u32::try_from(self.tokens(config.clock.now())).unwrap_or(u32::MAX)
    }

    /// Returns how many calls the limit would admit now if no call waited.
    fn tokens(&self, now: Moment) -> u64 {
        match (&self.shared.state, self.shared.config.rule) {
            (State::Bucket(bucket), _) => bucket.available(now),
            (State::Window(window), Rule::Window(limit)) => lock(window).available(limit, now),
            (State::Window(_), Rule::Bucket(_)) => 0,
        }
    }

    fn has_tokens(&self, n: u32, now: Moment) -> bool {
        self.tokens(now) >= u64::from(n)
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.config.clock
    }

    /// Returns the maximum wait of a call, if it is limited.
    pub(crate) fn wait_max(&self) -> Option<Duration> {
        (self.shared.config.wait_max < Duration::MAX).then_some(self.shared.config.wait_max)
    }

    /// Checks a sliding window, or finds that other callers wait.
    fn check_in_turn(&self, n: u32) -> Result<(), Refused> {
        let now = self.shared.config.clock.now();
        let is_line_empty = self.shared.waiting.load(Ordering::Relaxed) == 0;
        let taken = if is_line_empty || self.passes_waiting(n, now) {
            self.take(n, now)
        } else {
            Err(self.refusal_while_others_wait(n))
        };
        if taken.is_ok() {
            self.shared.config.admitted(Duration::ZERO);
        }
        taken.map_err(|refusal| self.refused(refusal))
    }

    #[cold]
    fn refused(&self, refusal: Refused) -> Refused {
        refused(self.shared.config.observer.as_ref(), &self.shared.config.name, refusal)
    }

    /// New tokens belong to the waiting callers.
    #[cold]
    fn refusal_while_others_wait(&self, n: u32) -> Refused {
        let is_above = u64::from(n) > self.shared.config.rule.burst();
        Refused::new(
            if is_above { GiveUpReason::AboveBurst } else { GiveUpReason::RateLimited },
            None,
        )
    }

    #[inline]
    fn take(&self, n: u32, now: Moment) -> Result<(), Refused> {
        let Shared { state, config, .. } = &*self.shared;
        let taken = match state {
            State::Bucket(bucket) => bucket.take(u64::from(n), now),
            State::Window(window) => match config.rule {
                Rule::Window(limit) if u64::from(n) <= limit.calls => {
                    lock(window).take(limit, u64::from(n), now).map_err(nanos)
                }
                Rule::Window(_) | Rule::Bucket(_) => Err(0),
            },
        };
        match taken {
            Ok(()) => Ok(()),
            Err(wait) => Err(refusal(&config.rule, n, wait)),
        }
    }
}

/// Builds a refusal. Kept out of the code path of admitted calls.
#[cold]
fn refusal(rule: &Rule, n: u32, wait: u64) -> Refused {
    if u64::from(n) > rule.burst() {
        Refused::new(GiveUpReason::AboveBurst, None)
    } else {
        Refused::new(GiveUpReason::RateLimited, Some(Duration::from_nanos(wait)))
    }
}

/// Sets up a [`RateLimiter`].
#[derive(Clone, Debug)]
pub struct RateLimiterBuilder {
    rule: Rule,
    calls: u32,
    period: Duration,
    wait_max: Duration,
    queue_max: usize,
    name: Cow<'static, str>,
    clock: Clock,
    observer: Option<Arc<dyn Observer>>,
}

impl RateLimiterBuilder {
    /// Tells the observer that a call was let in.
    #[inline]
    pub(super) fn admitted(&self, waited: Duration) {
        let by = GiveUpReason::RateLimited;
        crate::observer::admitted(self.observer.as_ref(), &self.name, by, waited);
    }
}

impl RateLimiterBuilder {
    const fn new(rule: Rule, calls: u32, period: Duration) -> RateLimiterBuilder {
        RateLimiterBuilder {
            rule,
            calls,
            period,
            wait_max: Duration::MAX,
            queue_max: 1_000,
            name: Cow::Borrowed(""),
            clock: Clock::system(),
            observer: None,
        }
    }

    /// Sets how many calls are admitted at once after a pause.
    ///
    /// # Panics
    /// Panics if the number is zero, for a sliding window, and if the burst takes more than a
    /// century to fill; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn burst(mut self, calls: u32) -> RateLimiterBuilder {
        self.rule = valid(checked::burst(self.rule, calls));
        self
    }

    /// Sets how long [`acquire`](RateLimiter::acquire) and pipelines may wait. The default is no
    /// limit.
    #[must_use]
    pub const fn wait_max(mut self, time: Duration) -> RateLimiterBuilder {
        self.wait_max = time;
        self
    }

    /// Sets how many callers may wait at the same time. The default is a thousand. The last caller
    /// in the queue waits for all others.
    #[must_use]
    pub const fn queue_max(mut self, waiters: usize) -> RateLimiterBuilder {
        self.queue_max = waiters;
        self
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> RateLimiterBuilder {
        self.name = name.into();
        self
    }

    /// Uses another clock. [`Clock::coarse`] suits limiters that are called very often.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> RateLimiterBuilder {
        self.clock = clock.into();
        self
    }

    /// Reports refusals to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> RateLimiterBuilder {
        self.observer = Some(observer);
        self
    }

    /// Reports to this observer unless another one was set.
    #[cfg(feature = "reqwest")]
    pub(crate) fn observer_if_none(
        mut self,
        observer: Option<&Arc<dyn Observer>>,
    ) -> RateLimiterBuilder {
        self.observer = self.observer.or_else(|| observer.cloned());
        self
    }

    /// Creates the limiter with all its tokens.
    pub fn build(mut self) -> RateLimiter {
        self.adapt_to_clock();
        self.build_adapted()
    }

    /// As `build`, for settings that fit the clock already.
    fn build_adapted(self) -> RateLimiter {
        let state = match self.rule {
            Rule::Bucket(bucket) => {
                let resolution = nanos(self.clock.resolution());
                let gcra = Gcra::new(bucket.interval(), bucket.burst());
                State::Bucket(gcra.with_resolution(resolution))
            }
            Rule::Window(_) => State::Window(Mutex::new(Sliding::new())),
        };
        RateLimiter {
            shared: Arc::new(Shared {
                state,
                waiting: AtomicUsize::new(0),
                queue: Mutex::new(Queue::default()),
                config: self,
            }),
        }
    }

    /// Adjusts to a coarse clock. A window becomes longer by the resolution of the clock. A bucket
    /// withholds tokens that may not have arrived yet (see [`Bucket::take`]).
    fn adapt_to_clock(&mut self) {
        let resolution = nanos(self.clock.resolution());
        match &mut self.rule {
            Rule::Window(limit) => {
                let window = nanos(self.period).saturating_add(resolution);
                *limit = Limit::new(limit.calls, window);
            }
            Rule::Bucket(bucket) => {
                self.clock = std::mem::take(&mut self.clock).fine_enough_for(bucket.capacity());
            }
        }
    }

    /// Creates one limiter per key, for at most this many keys.
    ///
    /// # Panics
    /// Panics if the number is zero.
    pub fn keyed<K: Hash + Eq + Clone>(self, keys_max: usize) -> KeyedRateLimiter<K> {
        KeyedRateLimiter::new(self, keys_max)
    }
}

impl std::fmt::Display for RateLimiterBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let period = crate::duration::text(self.period);
        match self.rule {
            Rule::Bucket(bucket) => {
                write!(f, "{} per {period}, burst {}", self.calls, bucket.burst())
            }
            Rule::Window(_) => write!(f, "{} in any {period}", self.calls),
        }
    }
}

impl RateLimiter {
    pub(crate) fn describe(&self) -> String {
        self.shared.config.to_string()
    }
}

#[cfg(test)]
mod tests;
