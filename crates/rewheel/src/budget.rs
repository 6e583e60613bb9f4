//! Retry budget: limits retries to a small share of all calls.

mod keyed;

pub use self::keyed::KeyedRetryBudget;

use crate::clock::Clock;
use crate::duration::nanos;
use crate::error::{GiveUpReason, Refused};
use crate::limiter::gcra::Gcra;
use crate::observer::{Observer, refused};
use crate::ratio::Ratio;
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use crate::sync::{AtomicU64, Ordering};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A retry budget shared by all calls to one dependency. Clones share its state.
///
/// When most calls fail, retrying each of them multiplies the load on a dependency that is already failing. A budget allows the
/// retry of single failures, and refuses retries that would exceed a share of the traffic. First attempts are never refused.
///
/// ```
/// use rewheel::{Retry, RetryBudget, Retryable, GiveUpReason, millis};
/// use std::io;
///
/// let budget = RetryBudget::ratio(0.2).floor_per_second(0).burst(2).build();
/// let mut attempts = 0;
/// for _ in 0..100 {
///     let _ = (|| { attempts += 1; Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)) })
///         .retry(Retry::fixed(millis(0)).attempts_max(4))
///         .retry_budget(&budget)
///         .call();
/// }
/// assert_eq!(attempts, 100 + 2 + 20); // the calls, the initial balance, a fifth of the calls
/// ```
#[derive(Clone, Debug)]
pub struct RetryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// In units of 1/[`TOKEN`] retries. Stays full while nothing is retried, so that calls to a healthy dependency read this
    /// cache line but do not write it.
    balance: AtomicU64,
    balance_max: u64,
    deposit: u64,
    /// Retries allowed independent of traffic.
    floor: Option<Gcra>,
    floor_per_second: u32,
    clock: Clock,
    name: Cow<'static, str>,
    observer: Option<Arc<dyn Observer>>,
}

/// One retry, in the units that a call deposits; fine enough for a ratio of one millionth.
const TOKEN: u64 = 1_000_000;

impl RetryBudget {
    /// The maximum burst.
    pub const BURST_MAX: u32 = 1_000_000;

    /// Allows retries up to this share of the calls, 0 to 1, plus a floor of ten retries per second that are always allowed. If
    /// many processes make few calls each, the floors are larger than the share: lower the floor with
    /// [`floor_per_second`](RetryBudgetBuilder::floor_per_second).
    ///
    /// # Panics
    /// Panics if the value is not 0 to 1; in a constant that is a compile error.
    #[track_caller]
    pub const fn ratio(ratio: f64) -> RetryBudgetBuilder {
        RetryBudgetBuilder::of_ratio(valid(checked_ratio(ratio)))
    }

    /// As [`ratio`](RetryBudget::ratio), without the panic.
    ///
    /// ```
    /// use rewheel::RetryBudget;
    ///
    /// let budget = RetryBudget::try_ratio(0.2)?.try_burst(50)?.build();
    /// let error = RetryBudget::try_ratio(20.0).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid ratio `20`: use 0 to 1");
    /// # let _ = budget;
    /// # Ok::<_, rewheel::SettingError>(())
    /// ```
    ///
    /// # Errors
    /// Rejects a ratio outside of 0 to 1.
    pub fn try_ratio(ratio: f64) -> Result<RetryBudgetBuilder, SettingError> {
        let ratio = checked_ratio(ratio).map_err(|rule| rule.with(ratio))?;
        Ok(RetryBudgetBuilder::of_ratio(ratio))
    }

    /// Allows this many retries per second, independent of traffic.
    ///
    /// # Panics
    /// Panics if the value is zero or more than a million; in a constant that is a compile error.
    #[track_caller]
    pub const fn per_second(retries: u32) -> RetryBudgetBuilder {
        RetryBudgetBuilder::of_time(valid(checked_per_second(retries)))
    }

    /// As [`per_second`](RetryBudget::per_second), without the panic.
    ///
    /// # Errors
    /// Rejects a number outside of 1 to a million.
    pub fn try_per_second(retries: u32) -> Result<RetryBudgetBuilder, SettingError> {
        let retries = checked_per_second(retries).map_err(|rule| rule.with(retries))?;
        Ok(RetryBudgetBuilder::of_time(retries))
    }

    /// Counts a call, which adds a fraction of a retry to the budget.
    #[inline]
    pub fn deposit(&self) {
        let Shared { balance, balance_max, deposit, .. } = &*self.shared;
        if *deposit == 0 || balance.load(Ordering::Relaxed) >= *balance_max {
            return;
        }
        let add = |balance: u64| {
            (balance < *balance_max).then(|| balance.saturating_add(*deposit).min(*balance_max))
        };
        let _ = balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes one retry from the budget.
    ///
    /// # Errors
    /// Refused if the share of retries in the traffic is already too large.
    #[inline]
    pub fn withdraw(&self) -> Result<(), Refused> {
        let spend = |balance: u64| balance.checked_sub(TOKEN);
        let balance = &self.shared.balance;
        if balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok() {
            return Ok(());
        }
        self.withdraw_from_floor()
    }

    /// Takes a retry from the floor.
    #[cold]
    fn withdraw_from_floor(&self) -> Result<(), Refused> {
        let floor = self.shared.floor.as_ref().map(|floor| floor.take(1, self.shared.clock.now()));
        let retry_in = match floor {
            Some(Ok(())) => return Ok(()),
            Some(Err(wait)) => Some(Duration::from_nanos(wait)),
            None => None,
        };
        let Shared { name, observer, .. } = &*self.shared;
        Err(refused(observer.as_ref(), name, Refused::new(GiveUpReason::BudgetExhausted, retry_in)))
    }

    /// Returns whether a retry would be allowed now, by the balance or by the floor.
    #[cfg(any(feature = "reqwest", feature = "http"))]
    pub(crate) fn may_withdraw(&self) -> bool {
        let Shared { floor, clock, .. } = &*self.shared;
        self.balance() > 0 || floor.as_ref().is_some_and(|floor| floor.available(clock.now()) > 0)
    }

    /// Returns whether both are handles to the same budget.
    pub(crate) fn is_same(&self, other: &RetryBudget) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the number of earned retries that are not used.
    pub fn balance(&self) -> u64 {
        self.shared.balance.load(Ordering::Relaxed) / TOKEN
    }
}

/// Builder of a [`RetryBudget`].
#[derive(Clone, Debug)]
pub struct RetryBudgetBuilder {
    /// What a call earns; `None` if only time earns.
    deposit: Option<Ratio>,
    floor: u32,
    burst: u32,
    clock: Clock,
    name: Cow<'static, str>,
    observer: Option<Arc<dyn Observer>>,
}

const fn checked_ratio(ratio: f64) -> Result<Ratio, NotAllowed> {
    match Ratio::new(ratio) {
        Some(ratio) => Ok(ratio),
        None => Err(not_allowed!("ratio", "use 0 to 1")),
    }
}

const fn checked_per_second(retries: u32) -> Result<u32, NotAllowed> {
    if 0 < retries && retries <= RetryBudget::BURST_MAX {
        Ok(retries)
    } else {
        Err(not_allowed!("per_second", "use 1 to 1000000"))
    }
}

const fn checked_floor(retries: u32) -> Result<u32, NotAllowed> {
    if retries <= RetryBudget::BURST_MAX {
        Ok(retries)
    } else {
        Err(not_allowed!("floor_per_second", "use at most 1000000"))
    }
}

const fn checked_burst(retries: u32) -> Result<u32, NotAllowed> {
    if 0 < retries && retries <= RetryBudget::BURST_MAX {
        Ok(retries)
    } else {
        Err(not_allowed!("burst", "use 1 to 1000000"))
    }
}

impl RetryBudgetBuilder {
    const fn of_ratio(ratio: Ratio) -> RetryBudgetBuilder {
        RetryBudgetBuilder::new(Some(ratio), 10, 100)
    }

    const fn of_time(retries: u32) -> RetryBudgetBuilder {
        RetryBudgetBuilder::new(None, retries, retries)
    }

    const fn new(deposit: Option<Ratio>, floor: u32, burst: u32) -> RetryBudgetBuilder {
        RetryBudgetBuilder {
            deposit,
            floor,
            burst,
            clock: Clock::system(),
            name: Cow::Borrowed(""),
            observer: None,
        }
    }

    /// Allows this many retries per second independent of traffic. With very few calls, the share would allow less than one
    /// retry, and a few retries are harmless. The default is ten.
    ///
    /// # Panics
    /// Panics if the number is more than a million; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn floor_per_second(mut self, retries: u32) -> RetryBudgetBuilder {
        self.floor = valid(checked_floor(retries));
        self
    }

    /// As [`floor_per_second`](RetryBudgetBuilder::floor_per_second), without the panic.
    ///
    /// # Errors
    /// Rejects more than a million.
    pub fn try_floor_per_second(
        mut self,
        retries: u32,
    ) -> Result<RetryBudgetBuilder, SettingError> {
        self.floor = checked_floor(retries).map_err(|rule| rule.with(retries))?;
        Ok(self)
    }

    /// Sets how many unused retries the budget can keep. The default is a hundred; for
    /// [`RetryBudget::per_second`] it is the number of retries of one second.
    ///
    /// # Panics
    /// Panics if the number is not 1 to a million; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn burst(mut self, retries: u32) -> RetryBudgetBuilder {
        self.burst = valid(checked_burst(retries));
        self
    }

    /// As [`burst`](RetryBudgetBuilder::burst), without the panic.
    ///
    /// # Errors
    /// Rejects a number outside of 1 to a million.
    pub fn try_burst(mut self, retries: u32) -> Result<RetryBudgetBuilder, SettingError> {
        self.burst = checked_burst(retries).map_err(|rule| rule.with(retries))?;
        Ok(self)
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> RetryBudgetBuilder {
        self.clock = clock.into();
        self
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> RetryBudgetBuilder {
        self.name = name.into();
        self
    }

    /// Reports refusals to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> RetryBudgetBuilder {
        self.observer = Some(observer);
        self
    }

    /// Reports to this observer unless another one was set.
    #[cfg(feature = "reqwest")]
    pub(crate) fn observer_if_none(
        mut self,
        observer: Option<&Arc<dyn Observer>>,
    ) -> RetryBudgetBuilder {
        self.observer = self.observer.or_else(|| observer.cloned());
        self
    }

    /// Creates the budget with a full balance.
    pub fn build(self) -> RetryBudget {
        let (saved, floor_burst) = match self.deposit {
            Some(_) => (u64::from(self.burst) * TOKEN, self.floor),
            None => (0, self.burst),
        };
        let interval = nanos(Duration::from_secs(1)).div_ceil(u64::from(self.floor.max(1)));
        let clock = self.clock.fine_enough_for(interval * u64::from(floor_burst));
        let floor = (self.floor > 0).then(|| {
            Gcra::new(interval, u64::from(floor_burst)).with_resolution(nanos(clock.resolution()))
        });
        RetryBudget {
            shared: Arc::new(Shared {
                balance: AtomicU64::new(saved),
                // A full balance still accepts a fraction of a token: cutting it off would lose much of the ratio of a small
                // balance.
                balance_max: saved + TOKEN - 1,
                deposit: self.deposit.map_or(0, Ratio::millionths),
                floor,
                floor_per_second: self.floor,
                clock,
                name: self.name,
                observer: self.observer,
            }),
        }
    }
}

impl std::fmt::Display for RetryBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shared { deposit, floor_per_second, name, .. } = &*self.shared;
        f.write_str("retry budget")?;
        if !name.is_empty() {
            write!(f, " {name:?}")?;
        }
        if *deposit == 0 {
            return write!(f, ": at most {floor_per_second} retries per 1s");
        }
        // Millionths: enough for any ratio that a budget can have.
        let percent = *deposit as f64 / 10_000.0;
        write!(f, ": retries are at most {percent}% of the calls")?;
        if *floor_per_second > 0 {
            write!(f, ", but {floor_per_second} per 1s are always allowed")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
