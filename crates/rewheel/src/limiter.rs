//! Admits so many calls in a time.

pub(crate) mod gcra;
mod sliding;
mod waiting;
mod keyed;
mod checked;

pub use self::keyed::KeyedRateLimiter;
pub(crate) use self::waiting::{Admission, Waiting};

use self::gcra::{Bucket, Gcra};
use self::sliding::{Limit, Sliding};
use crate::clock::{Clock, Moment};
use crate::duration::nanos;
use crate::error::{Refused, Why};
use crate::observer::{Observer, refused};
use crate::queue::Queue;
use crate::setting::valid;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};
use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// A rate limiter. Clones share it: make one per limit, and keep it.
///
/// A token bucket admits a burst at once and the rate from then on; a sliding window admits so many
/// in any stretch of time of its length. Neither ever admits more, whatever the number of threads;
/// a reading of the clock that is late or coarse can only lead to fewer.
///
/// ```
/// use rewheel::{ManualClock, RateLimiter, Why, millis};
///
/// let clock = ManualClock::new();
/// let limiter = RateLimiter::per_second(10).burst(2).clock(&clock).build();
///
/// assert!(limiter.check().is_ok() && limiter.check().is_ok());
/// let refused = limiter.check().unwrap_err();
/// assert_eq!((refused.why, refused.retry_in), (Why::RateLimited, Some(millis(100))));
///
/// clock.advance(millis(100));
/// assert!(limiter.check().is_ok());
/// assert_eq!(limiter.check_n(3).unwrap_err().why, Why::AboveBurst);
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: State,
    /// How many wait: those who do not want to must not overtake them.
    waiting: AtomicUsize,
    queue: Mutex<Queue>,
    config: RateLimiterBuilder,
}

#[derive(Debug)]
enum State {
    Bucket(Gcra),
    Window(Mutex<Sliding>),
}

/// What is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Bucket(Bucket),
    Window(Limit),
}

impl Rule {
    /// Returns how many can be admitted at once, at the best of times.
    const fn burst(&self) -> u64 {
        match self {
            Rule::Bucket(bucket) => bucket.burst(),
            Rule::Window(limit) => limit.calls,
        }
    }
}

impl RateLimiter {
    /// Admits so many a second; the burst is as many, unless set.
    ///
    /// # Panics
    /// Panics if it is zero or more than a thousand million; in a constant that is a compile error.
    #[track_caller]
    pub const fn per_second(calls: u32) -> RateLimiterBuilder {
        RateLimiter::per(calls, Duration::from_secs(1))
    }

    /// Admits so many in each stretch of time of this length on average, evenly spaced once the
    /// burst is used up.
    ///
    /// # Panics
    /// Panics if there are none, or more than one a nanosecond, or if the burst takes more than a
    /// century to fill; in a constant that is a compile error.
    #[track_caller]
    pub const fn per(calls: u32, period: Duration) -> RateLimiterBuilder {
        RateLimiterBuilder::new(valid(checked::rate(calls, period)), calls, period)
    }

    /// Admits at most so many in any stretch of time of this length, however they come.
    ///
    /// A call is counted until a 32nd of the window after it has left it.
    ///
    /// # Panics
    /// Panics if there are none, or if the window is below a microsecond; in a constant that is a
    /// compile error.
    #[track_caller]
    pub const fn sliding_window(calls: u32, window: Duration) -> RateLimiterBuilder {
        RateLimiterBuilder::new(valid(checked::window(calls, window)), calls, window)
    }

    /// Asks for one call to be admitted now.
    ///
    /// # Errors
    /// Refuses if the limit is reached, and says when to ask again; and if others wait already.
    #[inline]
    pub fn check(&self) -> Result<(), Refused> {
        self.check_n(1)
    }

    /// Asks for a call that weighs as much as `n` to be admitted now: all of it, or none.
    ///
    /// # Errors
    /// As [`check`](RateLimiter::check); and refuses for good what is above the burst.
    #[inline]
    pub fn check_n(&self, n: u32) -> Result<(), Refused> {
        // Small enough to become a part of the caller: what is not admitted at once is elsewhere.
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

    /// Waits until one call is admitted, in the order in which callers came.
    ///
    /// Cancel safe: a dropped call gives its place in the line to the next and uses no tokens.
    ///
    /// # Errors
    /// Refuses if the wait is, or turns out, longer than
    /// [`wait_max`](RateLimiterBuilder::wait_max), and if too many wait already.
    pub async fn acquire(&self) -> Result<(), Refused> {
        self.acquire_n(1).await
    }

    /// As [`acquire`](RateLimiter::acquire), for a call that weighs as much as `n`.
    ///
    /// # Errors
    /// As there; and refuses for good what is above the burst.
    pub async fn acquire_n(&self, n: u32) -> Result<(), Refused> {
        waiting::acquire(self, n).await
    }

    /// Returns how many calls [`check`](RateLimiter::check) would admit now: none while others wait
    /// in line. By the time it is used, another caller may have taken them.
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
        let Shared { state, waiting, config, .. } = &*self.shared;
        if waiting.load(Ordering::Relaxed) > 0 {
            return 0;
        }
        let now = config.clock.now();
        let available = match (state, config.rule) {
            (State::Bucket(bucket), _) => bucket.available(now),
            (State::Window(window), Rule::Window(limit)) => lock(window).available(limit, now),
            (State::Window(_), Rule::Bucket(_)) => 0,
        };
        u32::try_from(available).unwrap_or(u32::MAX)
    }

    /// Returns its name, if it was given one.
    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.config.clock
    }

    /// Returns the longest that a call may have to wait, if there is such a time.
    pub(crate) fn wait_max(&self) -> Option<Duration> {
        (self.shared.config.wait_max < Duration::MAX).then_some(self.shared.config.wait_max)
    }

    /// Asks a sliding window, or finds that others wait.
    fn check_in_turn(&self, n: u32) -> Result<(), Refused> {
        let taken = if self.shared.waiting.load(Ordering::Relaxed) == 0 {
            self.take(n, self.shared.config.clock.now())
        } else {
            Err(self.refusal_while_others_wait(n))
        };
        if taken.is_ok() {
            self.shared.config.admitted(Duration::ZERO);
        }
        taken.map_err(|refusal| self.refused(refusal))
    }

    fn refused(&self, refusal: Refused) -> Refused {
        refused(self.shared.config.observer.as_ref(), &self.shared.config.name, refusal)
    }

    /// Tokens that come in belong to those who wait for them.
    #[cold]
    fn refusal_while_others_wait(&self, n: u32) -> Refused {
        let is_above = u64::from(n) > self.shared.config.rule.burst();
        Refused::new(if is_above { Why::AboveBurst } else { Why::RateLimited }, None)
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

/// Decides what a refusal says. Out of the way of the calls that are admitted.
#[cold]
fn refusal(rule: &Rule, n: u32, wait: u64) -> Refused {
    if u64::from(n) > rule.burst() {
        Refused::new(Why::AboveBurst, None)
    } else {
        Refused::new(Why::RateLimited, Some(Duration::from_nanos(wait)))
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
        let by = Why::RateLimited;
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

    /// Sets how many are admitted at once after a pause.
    ///
    /// # Panics
    /// Panics if there are none, on a sliding window, and if they take more than a century to
    /// come in; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn burst(mut self, calls: u32) -> RateLimiterBuilder {
        self.rule = valid(checked::burst(self.rule, calls));
        self
    }

    /// Sets how long [`acquire`](RateLimiter::acquire) and pipelines may wait. For ever unless set.
    #[must_use]
    pub const fn wait_max(mut self, time: Duration) -> RateLimiterBuilder {
        self.wait_max = time;
        self
    }

    /// Sets how many may wait at the same time. A thousand unless set: who comes last waits for
    /// all of them.
    #[must_use]
    pub const fn queue_max(mut self, waiters: usize) -> RateLimiterBuilder {
        self.queue_max = waiters;
        self
    }

    /// Names it, for people and for telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> RateLimiterBuilder {
        self.name = name.into();
        self
    }

    /// Goes by another clock. [`Clock::coarse`] is made for limiters that are asked all the time.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> RateLimiterBuilder {
        self.clock = clock.into();
        self
    }

    /// Reports its refusals.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> RateLimiterBuilder {
        self.observer = Some(observer);
        self
    }

    /// Makes the limiter, with all its tokens.
    pub fn build(mut self) -> RateLimiter {
        self.adapt_to_clock();
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

    /// Reckons with a coarse clock. A window gets longer by what the clock may be late. A bucket
    /// withholds what may not have come in yet (see [`Bucket::take`]).
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

    /// Makes a limiter for each key, for at most so many keys.
    ///
    /// # Panics
    /// Panics if that is none.
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
