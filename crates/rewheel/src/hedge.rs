//! Hedge: a second attempt for a call that is slower than usual.

mod builder;
mod latency;
mod race;
mod call;

pub use self::builder::HedgeBuilder;
pub use self::call::{OfPipeline, Plain};
pub use self::race::{Hedging, Tries};

use self::builder::{When, checked_delay, checked_percentile};
use self::latency::Latencies;
use crate::budget::RetryBudget;
use crate::classify::{Class, Classify};
use crate::clock::Clock;
use crate::duration::text;
use crate::observer::Observer;
use crate::pipeline::Explanation;
use crate::retry::{ByClassify, ByJudge};
use crate::setting::{SettingError, valid};
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Makes a call again while the first attempt is still running, if the first one is slow. The first success wins, and the
/// others are dropped. Clones share the latencies that they have seen, and the budget.
///
/// A few calls of a healthy service are slow because of one busy host or one lost packet. A second attempt usually takes
/// another way and is faster, so a hedge shortens the slowest percent of the calls. Both attempts may run to their end in the
/// called service, so use it only for calls that may safely run twice: each call says so with [`SafeToRepeat`].
///
/// ```
/// use rewheel::{Hedge, SafeToRepeat, millis};
/// # use std::io;
/// # async fn fetch_page(number: u32) -> io::Result<u32> { Ok(number) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> io::Result<()> {
/// let hedge = Hedge::after(millis(50)).build();       // after a fixed delay
/// let usual = Hedge::percentile(0.95).build();        // when slower than 95 % of the calls
///
/// let page = hedge.call(SafeToRepeat, || fetch_page(7)).await?;
/// # assert_eq!((page, usual.delay()), (7, None));
/// # Ok(())
/// # }
/// ```
/// ```compile_fail
/// # use rewheel::{Hedge, millis};
/// # async fn charge() -> std::io::Result<()> { Ok(()) }
/// # async fn example(hedge: Hedge) {
/// let twice = hedge.call(|| charge()).await; // it does not say that `charge` is safe to repeat
/// # }
/// ```
///
/// Extra attempts are paid from a [`RetryBudget`]. When the whole service is slow, every call would be made twice; the budget
/// limits the extra attempts to a share of the calls, 10 % by default. A call that fails before the delay is not repeated:
/// that is the task of a retry.
#[derive(Clone, Debug)]
pub struct Hedge {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    delay: Delay,
    extra_max: u32,
    budget: RetryBudget,
    clock: Clock,
    name: Cow<'static, str>,
    observer: Option<Arc<dyn Observer>>,
}

#[derive(Debug)]
enum Delay {
    Fixed(Duration),
    Tracked(Box<Latencies>),
}

/// States that an operation may run twice at the same time without harm: it only reads, or it has an idempotency key.
///
/// Every hedged call needs it as an argument, so that no call is hedged by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SafeToRepeat;

impl Hedge {
    /// The maximum number of extra attempts of a call.
    pub const EXTRA_MAX: u32 = 4;

    /// The maximum number of latencies that a hedge remembers.
    pub const WINDOW_MAX: u32 = 100_000;

    /// Starts an extra attempt if a call takes longer than `delay`.
    ///
    /// ```compile_fail
    /// const AT_ONCE: rewheel::HedgeBuilder = rewheel::Hedge::after(rewheel::seconds(0));
    /// ```
    ///
    /// # Panics
    /// Panics if the delay is zero; in a constant that is a compile error.
    #[track_caller]
    pub const fn after(delay: Duration) -> HedgeBuilder {
        HedgeBuilder::new(When::After(valid(checked_delay(delay))))
    }

    /// As [`after`](Hedge::after), without the panic.
    ///
    /// ```
    /// use rewheel::{Hedge, seconds};
    ///
    /// let error = Hedge::try_after(seconds(0)).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid delay of a hedge `0s`: use a time above zero");
    /// ```
    ///
    /// # Errors
    /// Rejects a delay of zero.
    pub fn try_after(delay: Duration) -> Result<HedgeBuilder, SettingError> {
        let delay = checked_delay(delay).map_err(|rule| rule.with(text(delay)))?;
        Ok(HedgeBuilder::new(When::After(delay)))
    }

    /// Starts an extra attempt if a call takes longer than this share of the latest calls: 0.95 for the slowest 5 %.
    ///
    /// Until enough calls have been made to know the percentile, no call is hedged.
    ///
    /// ```compile_fail
    /// const NEVER: rewheel::HedgeBuilder = rewheel::Hedge::percentile(1.0);
    /// ```
    /// ```compile_fail
    /// const ALWAYS: rewheel::HedgeBuilder = rewheel::Hedge::percentile(0.0);
    /// ```
    ///
    /// # Panics
    /// Panics if the value is not between 0 and 1; 0 and 1 themselves are not allowed, nor is a percentile for which
    /// [`WINDOW_MAX`](Hedge::WINDOW_MAX) calls are too few. In a constant that is a compile error.
    #[track_caller]
    pub const fn percentile(percentile: f64) -> HedgeBuilder {
        HedgeBuilder::new(valid(checked_percentile(percentile)))
    }

    /// As [`percentile`](Hedge::percentile), without the panic.
    ///
    /// ```
    /// use rewheel::Hedge;
    ///
    /// let error = Hedge::try_percentile(1.0).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid percentile `1`: use more than 0 and at most 0.99999");
    /// ```
    ///
    /// # Errors
    /// Rejects what `percentile` panics at.
    pub fn try_percentile(percentile: f64) -> Result<HedgeBuilder, SettingError> {
        let when = checked_percentile(percentile).map_err(|rule| rule.with(percentile))?;
        Ok(HedgeBuilder::new(when))
    }

    /// Makes a call. The error is that of an attempt: a hedge adds none of its own. So it can be the operation of a retry or a
    /// [`Pipeline`](crate::Pipeline), which then count all attempts of the hedge as one. If each attempt should have
    /// its own permits, hedge the call of the pipeline instead: [`Call::hedge`](crate::Call::hedge).
    ///
    /// An error does not end the call while another attempt is running. An error of the category
    /// [`Rejected`](crate::Category::Rejected) does, because it is an answer of the called service.
    ///
    /// Cancel safe: dropping the call drops all attempts. There is no blocking form, because a blocked thread cannot be
    /// cancelled.
    ///
    /// ```
    /// use rewheel::{Hedge, Pipeline, Retry, SafeToRepeat, millis};
    /// # use std::io;
    /// # async fn fetch_page(number: u32) -> io::Result<u32> { Ok(number) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), rewheel::Error<io::Error>> {
    /// let hedge = Hedge::after(millis(50)).build();
    /// let fetch = Pipeline::new().retry(Retry::EXTERNAL_API);
    /// let page = fetch.run(|_| hedge.call(SafeToRepeat, || fetch_page(7))).await?;
    /// # assert_eq!(page, 7);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn call<F, Fut, T, E>(
        &self,
        _: SafeToRepeat,
        operation: F,
    ) -> Hedging<'_, Plain<F, ByClassify>>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: Classify,
    {
        Hedging::new(self, Plain::new(operation, ByClassify))
    }

    /// As [`call`](Hedge::call), for errors that do not implement [`Classify`] and for `Ok` values that are failures: `judge`
    /// decides what a result means.
    #[inline]
    pub fn call_judged<F, Fut, T, E, J>(
        &self,
        _: SafeToRepeat,
        judge: J,
        operation: F,
    ) -> Hedging<'_, Plain<F, ByJudge<J>>>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: FnMut(&Result<T, E>) -> Class,
    {
        Hedging::new(self, Plain::new(operation, ByJudge(judge)))
    }

    /// Returns after which time an extra attempt starts; `None` while too few calls are known.
    pub fn delay(&self) -> Option<Duration> {
        match &self.shared.delay {
            Delay::Fixed(delay) => Some(*delay),
            Delay::Tracked(latencies) => latencies.delay(),
        }
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Notes how long a call took, at least, if this hedge tracks that.
    #[inline]
    fn note(&self, latency: Duration) {
        match &self.shared.delay {
            Delay::Fixed(_) => {}
            Delay::Tracked(latencies) => latencies.note(latency),
        }
    }

    fn tracks(&self) -> bool {
        matches!(self.shared.delay, Delay::Tracked(_))
    }
}

impl fmt::Display for Hedge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { delay, extra_max, name, .. } = &*self.shared;
        f.write_str("hedge")?;
        if !name.is_empty() {
            write!(f, " {name:?}")?;
        }
        let plural = if *extra_max == 1 { "" } else { "s" };
        write!(f, ": at most {extra_max} extra attempt{plural}, ")?;
        match delay {
            Delay::Fixed(delay) => write!(f, "each after {}", text(*delay)),
            Delay::Tracked(latencies) => write!(f, "each {latencies}"),
        }
    }
}

impl Explanation {
    /// Describes the pipeline with this hedge around it, as [`Call::hedge`](crate::Call::hedge) uses it.
    ///
    /// ```
    /// use rewheel::{Hedge, Pipeline, Retry, millis};
    ///
    /// let hedge = Hedge::after(millis(50)).build();
    /// let explained = Pipeline::new().retry(Retry::EXTERNAL_API).explain().hedged(&hedge);
    /// assert!(explained.to_string().starts_with("hedge: at most 1 extra attempt, each after 50ms\n"));
    /// assert_eq!(explained.amplification_max, 2 * 5);
    /// ```
    #[must_use]
    pub fn hedged(mut self, hedge: &Hedge) -> Explanation {
        let extra_max = hedge.shared.extra_max;
        self.steps.insert(0, hedge.to_string());
        self.amplification_max = self.amplification_max.saturating_mul(u64::from(extra_max) + 1);
        // An extra attempt starts at the latest when the one before it ends.
        self.time_max = self.time_max.map(|time| {
            let delay = match hedge.shared.delay {
                Delay::Fixed(delay) => delay.min(time),
                Delay::Tracked(_) => time,
            };
            time.saturating_add(delay.saturating_mul(extra_max))
        });
        self
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
