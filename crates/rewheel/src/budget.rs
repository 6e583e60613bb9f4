//! Retry budget: limits retries to a small share of all calls.

use crate::clock::Clock;
use crate::duration::nanos;
use crate::error::{Refused, Why};
use crate::limiter::gcra::Gcra;
use crate::observer::{Observer, refused};
use crate::ratio::Ratio;
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
/// use rewheel::{Retry, RetryBudget, Retryable, Why, millis};
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
    clock: Clock,
    name: Cow<'static, str>,
    observer: Option<Arc<dyn Observer>>,
}

/// One retry, in the units that a call deposits; fine enough for a ratio of one millionth.
const TOKEN: u64 = 1_000_000;

impl RetryBudget {
    /// The maximum burst.
    pub const BURST_MAX: u32 = 1_000_000;

    /// Allows retries up to this share of the calls, 0 to 1, above a floor of ten per second. Where many processes make few calls
    /// each, the floors exceed the share: lower them with [`floor_per_second`](RetryBudgetBuilder::floor_per_second).
    ///
    /// # Panics
    /// Panics if the ratio is not 0 to 1; in a constant that is a compile error.
    pub const fn ratio(ratio: f64) -> RetryBudgetBuilder {
        let Some(ratio) = Ratio::new(ratio) else { panic!("a ratio is 0 to 1") };
        RetryBudgetBuilder::new(Some(ratio), 10, 100)
    }

    /// Allows this many retries per second, independent of traffic.
    ///
    /// # Panics
    /// Panics if the number is zero or more than a million; in a constant that is a compile error.
    pub const fn per_second(retries: u32) -> RetryBudgetBuilder {
        assert!(retries > 0, "a budget of no retries: make one attempt instead");
        assert!(retries <= RetryBudget::BURST_MAX, "a budget is at most a million a second");
        RetryBudgetBuilder::new(None, retries, retries)
    }

    /// Counts a call, which earns a fraction of a retry.
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
    /// Refused if retries already are too large a share of the traffic.
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
        Err(refused(observer.as_ref(), name, Refused::new(Why::BudgetExhausted, retry_in)))
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

impl RetryBudgetBuilder {
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

    /// Allows this many retries per second independent of traffic: a share of very few calls is less than one retry, and such
    /// retries are harmless. The default is ten.
    ///
    /// # Panics
    /// Panics if the number is more than a million; in a constant that is a compile error.
    #[must_use]
    pub const fn floor_per_second(mut self, retries: u32) -> RetryBudgetBuilder {
        assert!(retries <= RetryBudget::BURST_MAX, "a floor is at most a million a second");
        self.floor = retries;
        self
    }

    /// Sets how many unused retries can accumulate. The default is a hundred, or the retries of one second.
    ///
    /// # Panics
    /// Panics if the number is not 1 to a million; in a constant that is a compile error.
    #[must_use]
    pub const fn burst(mut self, retries: u32) -> RetryBudgetBuilder {
        assert!(retries > 0, "savings of nothing turn every retry down");
        assert!(retries <= RetryBudget::BURST_MAX, "a burst is at most a million");
        self.burst = retries;
        self
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
                clock,
                name: self.name,
                observer: self.observer,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
