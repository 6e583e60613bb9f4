//! Keeps retries a small share of the traffic, however much fails.

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

/// An allowance for retries that all calls to one dependency share. Clones share it too.
///
/// When most calls fail, retrying each of them multiplies the load on whatever is failing already.
/// A budget lets single failures be retried as if there were none, and turns retries down when they
/// would add more than a share of the traffic. First attempts are never held back.
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
/// assert_eq!(attempts, 100 + 2 + 20); // the calls, what was saved up, a fifth of the calls
/// ```
#[derive(Clone, Debug)]
pub struct RetryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Parts of a token: see [`TOKEN`]. Stays full while nothing is retried, so that a healthy
    /// dependency's calls read this line but do not fight over writing it.
    balance: AtomicU64,
    balance_max: u64,
    deposit: u64,
    /// What is allowed however little traffic there is.
    floor: Option<Gcra>,
    floor_per_second: u32,
    clock: Clock,
    name: Cow<'static, str>,
    observer: Option<Arc<dyn Observer>>,
}

/// One retry, in the parts that a call deposits: fine enough for a ratio of a millionth.
const TOKEN: u64 = 1_000_000;

impl RetryBudget {
    /// The most tokens that can be saved up.
    pub const BURST_MAX: u32 = 1_000_000;

    /// Allows retries up to this share of the calls, 0 to 1, above a floor of ten a second. Where many processes make few calls
    /// each, the floors are more than the share: lower them with [`floor_per_second`](RetryBudgetBuilder::floor_per_second).
    ///
    /// # Panics
    /// Panics if it is not 0 to 1; in a constant that is a compile error.
    pub const fn ratio(ratio: f64) -> RetryBudgetBuilder {
        let Some(ratio) = Ratio::new(ratio) else { panic!("a ratio is 0 to 1") };
        RetryBudgetBuilder::new(Some(ratio), 10, 100)
    }

    /// Allows so many retries a second, whatever the traffic.
    ///
    /// # Panics
    /// Panics if it is zero or more than a million; in a constant that is a compile error.
    pub const fn per_second(retries: u32) -> RetryBudgetBuilder {
        assert!(retries > 0, "a budget of no retries: make one attempt instead");
        assert!(retries <= RetryBudget::BURST_MAX, "a budget is at most a million a second");
        RetryBudgetBuilder::new(None, retries, retries)
    }

    /// Counts a call, which earns a share of a retry.
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

    /// Pays for one retry.
    ///
    /// # Errors
    /// Refuses if retries are a large enough share of the traffic already.
    #[inline]
    pub fn withdraw(&self) -> Result<(), Refused> {
        let spend = |balance: u64| balance.checked_sub(TOKEN);
        let balance = &self.shared.balance;
        if balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok() {
            return Ok(());
        }
        self.withdraw_from_floor()
    }

    /// Pays with what is allowed however little traffic there is.
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

    /// Returns how many retries the traffic has earned and not used.
    pub fn balance(&self) -> u64 {
        self.shared.balance.load(Ordering::Relaxed) / TOKEN
    }
}

/// Sets up a [`RetryBudget`].
#[derive(Clone, Debug)]
pub struct RetryBudgetBuilder {
    /// What a call earns; `None` where the time alone earns.
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

    /// Allows so many retries a second however little traffic there is: a fifth of two calls is
    /// none, and their failures are harmless. Ten unless set.
    ///
    /// # Panics
    /// Panics if it is more than a million; in a constant that is a compile error.
    #[must_use]
    pub const fn floor_per_second(mut self, retries: u32) -> RetryBudgetBuilder {
        assert!(retries <= RetryBudget::BURST_MAX, "a floor is at most a million a second");
        self.floor = retries;
        self
    }

    /// Sets how many retries can be saved up for a bad moment. A hundred unless set, or those of
    /// one second.
    ///
    /// # Panics
    /// Panics if it is not 1 to a million; in a constant that is a compile error.
    #[must_use]
    pub const fn burst(mut self, retries: u32) -> RetryBudgetBuilder {
        assert!(retries > 0, "savings of nothing turn every retry down");
        assert!(retries <= RetryBudget::BURST_MAX, "a burst is at most a million");
        self.burst = retries;
        self
    }

    /// Goes by another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> RetryBudgetBuilder {
        self.clock = clock.into();
        self
    }

    /// Names it, for people and for telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> RetryBudgetBuilder {
        self.name = name.into();
        self
    }

    /// Reports its refusals.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> RetryBudgetBuilder {
        self.observer = Some(observer);
        self
    }

    /// Makes the budget, with its savings full.
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
                // Full savings still take in the fraction of a token: cutting it off would cheat
                // small savings of much of the ratio.
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
