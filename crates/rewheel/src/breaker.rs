//! Stops calling what is down.

mod config;
mod checked;
mod word;
mod machine;
mod permit;
mod totals;

pub use self::config::CircuitBreakerBuilder;
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

/// A circuit breaker. Clones share it: make one per dependency, and keep it.
///
/// Closed, it lets every call pass and counts. When too much fails it opens and refuses at once,
/// which spares the callers their timeouts and the dependency their traffic. After a while it is
/// half open: a few probes may pass, and what becomes of them decides.
///
/// ```
/// use rewheel::{CircuitBreaker, BreakerState, Why, seconds};
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
/// assert_eq!((payments.state(), refused.why()), (BreakerState::Open, Why::CircuitOpen));
/// assert!(refused.retry_in().unwrap() <= seconds(30));
/// # }
/// ```
///
/// Only failures that blame the dependency count: an error that is
/// [`Rejected`](crate::Category::Rejected) was answered properly and counts as a success, and a call
/// that was cancelled counts as neither. Only a failure or a slow call can open a breaker. A result
/// that arrives after the breaker has changed its state belongs to the past and is ignored.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    machine: Arc<Machine>,
}

/// What a breaker does with calls.
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

/// What a breaker looks like at some instant.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BreakerSnapshot {
    /// What it does with calls.
    pub state: BreakerState,
    /// Whether a person holds it there, by [`isolate`](CircuitBreaker::isolate) or
    /// [`force_close`](CircuitBreaker::force_close).
    pub forced: bool,
    /// The calls that it goes by: those in its window, or the failures in a row.
    pub calls: u64,
    /// How many of them failed.
    pub failures: u64,
    /// How many of them were slow.
    pub slow: u64,
    /// How many probes are under way.
    pub probes: u32,
    /// When it will let a probe pass, if it is open and nobody holds it.
    pub retry_in: Option<Duration>,
    /// What it has counted since it was built.
    pub totals: BreakerTotals,
}

impl CircuitBreaker {
    /// Opens after so many failures in a row. The fastest: a success on a healthy breaker writes
    /// nothing that other threads read.
    ///
    /// # Panics
    /// Panics if it is zero; in a constant that is a compile error.
    #[track_caller]
    pub const fn consecutive(failures: u32) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(valid(Trip::consecutive(failures)))
    }

    /// Looks at the last so many calls, up to a million; opens when half of them failed.
    ///
    /// # Panics
    /// Panics if it is zero or more than a million; in a constant that is a compile error.
    #[track_caller]
    pub const fn count_window(calls: u32) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(valid(Trip::count_window(calls)))
    }

    /// Looks at the calls of so long a time; opens when half of them failed.
    ///
    /// # Panics
    /// Panics if it is less than ten milliseconds; in a constant that is a compile error.
    #[track_caller]
    pub const fn time_window(length: Duration) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(valid(Trip::time_window(length)))
    }

    /// Asks for a call to pass. The primitive under everything else.
    ///
    /// ```
    /// # fn charge() -> std::io::Result<()> { Ok(()) }
    /// # let payments = rewheel::CircuitBreaker::consecutive(5).build();
    /// let permit = payments.acquire()?;
    /// permit.record(&charge()); // dropped instead, it counts as neither
    /// # Ok::<_, rewheel::Refused>(())
    /// ```
    ///
    /// # Errors
    /// Refuses while the breaker is open, and while it is half open and all its probes are out.
    #[inline]
    pub fn acquire(&self) -> Result<Permit<'_>, Refused> {
        self.machine.acquire().map(|token| Permit::new(&self.machine, token))
    }

    /// As [`acquire`](CircuitBreaker::acquire), for a permit that outlives the borrow.
    ///
    /// # Errors
    /// As there.
    pub fn acquire_owned(&self) -> Result<OwnedPermit, Refused> {
        let token = self.machine.acquire()?;
        Ok(OwnedPermit::new(Arc::clone(&self.machine), token))
    }

    /// Makes a call if the breaker lets it pass, and records how it went. To retry it as well, put
    /// both into a [`Pipeline`](crate::Pipeline).
    ///
    /// Cancel safe: a call that is dropped counts as neither.
    ///
    /// # Errors
    /// The call's own error as `last`, or the refusal.
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
        result.map_err(stopped)
    }

    /// As [`call`](CircuitBreaker::call), for errors that do not implement [`Classify`] and for
    /// successes that are not: `judge` says what the result means.
    ///
    /// # Errors
    /// As there.
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
        permit.finish(Outcome::of_class(&judge(&result)));
        result.map_err(stopped)
    }

    /// As [`call`](CircuitBreaker::call), for an operation that blocks.
    ///
    /// # Errors
    /// The call's own error as `last`, or the refusal.
    #[inline]
    pub fn call_blocking<T, E: Classify>(
        &self,
        operation: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Error<E>> {
        let Some(token) = self.machine.acquire_if_closed() else {
            let permit = self.acquire()?;
            let result = operation();
            permit.record(&result);
            return result.map_err(stopped);
        };
        // What passes a closed breaker has nothing to give back if it panics: no permit needed.
        let result = operation();
        if let Some(outcome) = Outcome::of(&result) {
            self.machine.record_passed(token, outcome);
        }
        result.map_err(stopped)
    }

    /// Opens it now, as if too much had failed. It recovers by itself.
    pub fn force_open(&self) {
        self.machine.force_open();
    }

    /// Holds it open, without probes, until [`reset`](CircuitBreaker::reset) or
    /// [`force_close`](CircuitBreaker::force_close).
    pub fn isolate(&self) {
        self.machine.isolate();
    }

    /// Holds it closed, whatever fails, until [`reset`](CircuitBreaker::reset),
    /// [`force_open`](CircuitBreaker::force_open) or [`isolate`](CircuitBreaker::isolate).
    pub fn force_close(&self) {
        self.machine.force_close();
    }

    /// Closes it, forgets what it counted, and lets it decide for itself again.
    pub fn reset(&self) {
        self.machine.reset();
    }

    /// Returns what it does with calls now.
    pub fn state(&self) -> BreakerState {
        self.snapshot().state
    }

    /// Returns what it looks like now.
    pub fn snapshot(&self) -> BreakerSnapshot {
        self.machine.snapshot()
    }

    /// Returns its name, if it was given one.
    pub fn name(&self) -> &str {
        self.machine.name()
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// A breaker for each key, made when the key is first seen, for at most so many keys. Clones share
/// them.
///
/// Where one host of many is down, a breaker for all of them would turn a partial outage into a
/// total one. When there is no room for another key, one whose breaker has nothing to remember is
/// forgotten; if there is none, the one that was used longest ago.
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

    /// Returns how many keys it knows.
    pub fn len(&self) -> usize {
        self.shared.by_key.len()
    }

    /// Returns whether it knows no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn stopped<E>(error: E) -> Error<E> {
    Error::new(Refused::new(crate::Why::Stopped, None), 1, Duration::ZERO, Some(error))
}

/// What one finished call says about the dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
}

impl Outcome {
    /// Returns what a result says, if anything.
    #[inline]
    pub(crate) fn of<T, E: Classify>(result: &Result<T, E>) -> Option<Outcome> {
        match result {
            Ok(_) => Some(Outcome::Success),
            Err(error) => Outcome::of_class(&error.classify()),
        }
    }

    pub(crate) fn of_class(class: &Class) -> Option<Outcome> {
        if class.verdict == Verdict::Done || class.category == Category::Rejected {
            Some(Outcome::Success)
        } else {
            class.category.blames_dependency().then_some(Outcome::Failure)
        }
    }
}

#[cfg(test)]
mod tests;
