//! Circuit breaker: stops calling a dependency that is down.

mod config;
mod checked;
mod word;
mod machine;
mod permit;
mod totals;

pub use self::config::CircuitBreakerBuilder;
pub(crate) use self::config::Needs;
pub use self::permit::{OwnedPermit, Permit};
pub use self::totals::BreakerTotals;

use self::config::Trip;
use self::machine::Machine;
pub(crate) use self::machine::Token;
use crate::classify::{Category, Class, Classify, Verdict};
use crate::error::{Error, Refused};
use crate::keyed::Keyed;
use crate::setting::valid;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// A circuit breaker. Clones share its state: create one per dependency, and keep it.
///
/// While closed, it lets every call pass and counts results. When too many calls fail, the breaker opens and refuses calls at
/// once. So callers do not wait for timeouts, and the dependency gets less load. After some time it is half open: a few probes
/// may pass, and their results decide whether it closes or opens again.
///
/// ```
/// use rewheel::{CircuitBreaker, BreakerState, GiveUpReason, seconds};
/// use std::io;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let payments = CircuitBreaker::consecutive(2).open_for(seconds(30)).build();
/// # async fn charge() -> io::Result<()> { Err(io::ErrorKind::ConnectionRefused.into()) }
///
/// for _ in 0..2 {
///     let error = payments.call(|| charge()).await.unwrap_err();
///     assert_eq!(error.last().unwrap().kind(), io::ErrorKind::ConnectionRefused);
/// }
/// let refused = payments.call(|| charge()).await.unwrap_err();
/// assert_eq!((payments.state(), refused.reason()), (BreakerState::Open, GiveUpReason::CircuitOpen));
/// assert!(refused.retry_in().unwrap() <= seconds(30));
/// # }
/// ```
///
/// Only failures of the dependency count: an error of category [`Rejected`](crate::Category::Rejected) shows that the
/// dependency works, and counts as a success. A cancelled call does not count, nor does a call that another policy of this
/// process refused, such as a rate limiter inside. Only a failure or a slow call can open a
/// breaker. A result that arrives after the breaker has changed its state is ignored.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    machine: Arc<Machine>,
}

/// The state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Lets every call pass.
    Closed,
    /// Refuses every call.
    Open,
    /// Lets a few probes pass.
    HalfOpen,
}

impl BreakerState {
    /// Returns the name used in JSON, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half_open",
        }
    }
}

impl std::fmt::Display for BreakerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of a breaker at one point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BreakerSnapshot {
    /// The state.
    pub state: BreakerState,
    /// Whether the state was set manually, by [`isolate`](CircuitBreaker::isolate) or
    /// [`force_close`](CircuitBreaker::force_close).
    pub forced: bool,
    /// The number of calls that the breaker counts now: the calls in its window, or the failures in a row.
    pub calls: u64,
    /// The number of these calls that failed.
    pub failures: u64,
    /// The number of these calls that were slow.
    pub slow: u64,
    /// The number of probes in progress.
    pub probes: u32,
    /// Time until the breaker lets a probe pass, if it is open and was not opened manually.
    pub retry_in: Option<Duration>,
    /// What the breaker has counted since it was built.
    pub totals: BreakerTotals,
}

impl CircuitBreaker {
    /// Opens after this many failures in a row. The fastest variant: a success on a healthy breaker writes no shared memory.
    ///
    /// # Panics
    /// Panics if the value is zero; in a constant that is a compile error.
    #[track_caller]
    pub const fn consecutive(failures: u32) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(valid(Trip::consecutive(failures)))
    }

    /// Counts the last `calls` calls, up to a million; opens when half of them failed.
    ///
    /// # Panics
    /// Panics if the value is zero or more than a million; in a constant that is a compile error.
    #[track_caller]
    pub const fn count_window(calls: u32) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(valid(Trip::count_window(calls)))
    }

    /// Counts the calls within the last `length` of time; opens when half of them failed.
    ///
    /// # Panics
    /// Panics if the value is less than ten milliseconds; in a constant that is a compile error.
    #[track_caller]
    pub const fn time_window(length: Duration) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(valid(Trip::time_window(length)))
    }

    /// Requests a permit for one call. All other methods call this method.
    ///
    /// ```
    /// # fn charge() -> std::io::Result<()> { Ok(()) }
    /// # let payments = rewheel::CircuitBreaker::consecutive(5).build();
    /// let permit = payments.acquire()?;
    /// permit.record(&charge()); // if dropped instead, the call does not count
    /// # Ok::<_, rewheel::Refused>(())
    /// ```
    ///
    /// # Errors
    /// Refused while the breaker is open, and while it is half open and all probes are in progress.
    #[inline]
    pub fn acquire(&self) -> Result<Permit<'_>, Refused> {
        self.machine.acquire().map(|token| Permit::new(&self.machine, token))
    }

    /// Like [`acquire`](CircuitBreaker::acquire), for a permit that does not borrow the breaker.
    ///
    /// # Errors
    /// The same as for `acquire`.
    pub fn acquire_owned(&self) -> Result<OwnedPermit, Refused> {
        let token = self.machine.acquire()?;
        Ok(OwnedPermit::new(Arc::clone(&self.machine), token))
    }

    /// Makes a call if the breaker lets it pass, and records the result. To retry the call as well, use a
    /// breaker and a retry in a [`Pipeline`](crate::Pipeline).
    ///
    /// Cancel safe: a dropped call does not count.
    ///
    /// # Errors
    /// Returns the call's own error as `last`, or the refusal.
    #[inline]
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

    /// Like [`call`](CircuitBreaker::call), for errors that do not implement [`Classify`] and for `Ok` values that are failures:
    /// `judge` decides what the result means.
    ///
    /// # Errors
    /// The same as for `call`.
    pub async fn call_judged<F, Fut, T, E>(
        &self,
        judge: impl FnOnce(&Result<T, E>) -> Class,
        operation: F,
    ) -> Result<T, Error<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let permit = self.acquire()?;
        let result = operation().await;
        let class = judge(&result);
        let outcome = self.machine.judge_class(&class);
        permit.finish(outcome);
        result.map_err(|error| Error::of_class(&class, error))
    }

    /// Like [`call`](CircuitBreaker::call), for a blocking operation.
    ///
    /// # Errors
    /// Returns the call's own error as `last`, or the refusal.
    #[inline]
    pub fn call_blocking<T, E: Classify>(
        &self,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Error<E>> {
        let Some(token) = self.machine.acquire_if_closed() else {
            let permit = self.acquire()?;
            let result = operation();
            permit.record(&result);
            return result.map_err(Error::once);
        };
        // A call through a closed breaker has nothing to release if it panics, so it needs no permit.
        let result = operation();
        if let Some(outcome) = self.machine.judge(&result) {
            self.machine.record_passed(token, outcome);
        }
        result.map_err(Error::once)
    }

    /// Opens the breaker now, as if too many calls had failed. Later it lets probes pass, and closes when they succeed.
    pub fn force_open(&self) {
        self.machine.force_open();
    }

    /// Keeps the breaker open, without probes, until [`reset`](CircuitBreaker::reset) or
    /// [`force_close`](CircuitBreaker::force_close).
    pub fn isolate(&self) {
        self.machine.isolate();
    }

    /// Keeps the breaker closed, even if calls fail, until
    /// [`reset`](CircuitBreaker::reset), [`force_open`](CircuitBreaker::force_open) or [`isolate`](CircuitBreaker::isolate).
    pub fn force_close(&self) {
        self.machine.force_close();
    }

    /// Closes the breaker, clears its counts, and ends manual control.
    pub fn reset(&self) {
        self.machine.reset();
    }

    /// Returns the current state.
    pub fn state(&self) -> BreakerState {
        self.snapshot().state
    }

    /// Returns a snapshot of the current state and counts.
    pub fn snapshot(&self) -> BreakerSnapshot {
        self.machine.snapshot()
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> &str {
        self.machine.name()
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// One breaker per key, created when the key is first used, for a limited number of keys. Clones share them.
///
/// If one of many hosts is down, a single breaker for all hosts would also stop calls to the other hosts. When a new key
/// exceeds the limit, a key whose breaker has no counts is removed; if there is no such key, the least recently used key is
/// removed.
///
/// ```
/// use rewheel::CircuitBreaker;
///
/// let per_host = CircuitBreaker::consecutive(1).keyed::<String>(1_000);
/// per_host.get("a").acquire()?.failure();
///
/// assert!(per_host.get("a").acquire().is_err());
/// assert!(per_host.get("b").acquire().is_ok());
/// # Ok::<_, rewheel::Refused>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyedCircuitBreaker<K> {
    shared: Arc<Breakers<K>>,
}

#[derive(Debug)]
struct Breakers<K> {
    by_key: Keyed<K, CircuitBreaker>,
    template: CircuitBreakerBuilder,
}

impl<K: Hash + Eq + Clone> KeyedCircuitBreaker<K> {
    /// Returns the breaker of this key.
    pub fn get<Q>(&self, key: &Q) -> CircuitBreaker
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: std::borrow::Borrow<Q>,
    {
        self.shared.by_key.with(
            key,
            || self.shared.template.clone().build_unreported(),
            |breaker| breaker.machine.is_fresh(),
            |breaker| breaker.clone(),
        )
    }

    /// As [`get`](KeyedCircuitBreaker::get), then
    /// [`acquire_owned`](CircuitBreaker::acquire_owned).
    pub(crate) fn acquire<Q>(&self, key: &Q) -> Result<OwnedPermit, Refused>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: std::borrow::Borrow<Q>,
    {
        let breaker = self.get(key);
        let token = breaker.machine.acquire()?;
        Ok(OwnedPermit::new(breaker.machine, token))
    }

    /// Returns how many keys it knows.
    pub fn len(&self) -> usize {
        self.shared.by_key.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K> KeyedCircuitBreaker<K> {
    pub(crate) fn name(&self) -> &str {
        &self.shared.template.name
    }

    pub(crate) fn describe(&self) -> String {
        self.shared.template.to_string()
    }

    pub(crate) fn needs(&self) -> Needs {
        self.shared.template.needs()
    }
}

/// What a finished call says about the dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
}

impl Outcome {
    /// Returns the outcome of a result, if it says anything about the dependency.
    #[inline]
    pub(crate) fn of<T, E: Classify>(result: &Result<T, E>) -> Option<Outcome> {
        match result {
            Ok(_) => Some(Outcome::Success),
            Err(error) => Outcome::of_class(&error.classify()),
        }
    }

    pub(crate) fn of_class(class: &Class) -> Option<Outcome> {
        if class.is_refusal() {
            return None;
        }
        if class.verdict == Verdict::Done || class.category == Category::Rejected {
            Some(Outcome::Success)
        } else {
            class.category.blames_dependency().then_some(Outcome::Failure)
        }
    }
}

#[cfg(test)]
mod tests;
