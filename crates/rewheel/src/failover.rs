//! Failover: makes a call at another target if one fails.

mod builder;
mod round;

pub use self::builder::FailoverBuilder;

use self::round::{Round, Turn};
use crate::breaker::CircuitBreaker;
use crate::budget::RetryBudget;
use crate::classify::Classify;
use crate::clock::Clock;
use crate::ejection::{Ejections, OutlierEjection};
use crate::error::Error;
use crate::observer::Observer;
use crate::sync::AtomicUsize;
use std::borrow::Cow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::sync::Arc;

/// Several targets that can do the same work, such as replicas or regions: if one fails, the call goes to the next one. Each
/// has its own circuit breaker, so that a target that is down costs no time. Clones share the state.
///
/// ```
/// use rewheel::{CircuitBreaker, Failover, Pipeline, seconds};
/// # use std::io;
/// # async fn get(host: &str) -> io::Result<u32> {
/// #     if host == "eu.example" { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(7) }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rewheel::Error<io::Error>> {
/// let regions = Failover::over(["eu.example", "us.example"])
///     .circuit_breaker(CircuitBreaker::consecutive(3).open_for(seconds(20)))
///     .build();
/// let fetch = Pipeline::new().timeout(seconds(2));
///
/// let page = regions.run(|host| fetch.run(move |_| get(host))).await?;
/// # assert_eq!(page, 7);
/// # Ok(())
/// # }
/// ```
/// ```compile_fail
/// let none = rewheel::Failover::<&str>::over([]).build(); // an empty list of targets
/// ```
///
/// By default the first target gets all calls while it works; [`round_robin`](FailoverBuilder::round_robin) spreads them. A call
/// goes to the next target after a failure that a retry would repeat, and if a policy refused it. An error that cannot be
/// repeated ends the call. [`ejection`](FailoverBuilder::ejection) also leaves out a target that fails more than the others.
pub struct Failover<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    targets: Box<[Target<T>]>,
    order: Order,
    /// Where the next call starts, if they are spread.
    next: AtomicUsize,
    tries_max: usize,
    ejections: Option<(OutlierEjection, Ejections)>,
    budget: Option<RetryBudget>,
    clock: Clock,
    name: Cow<'static, str>,
    observer: Option<Arc<dyn Observer>>,
}

#[derive(Debug)]
struct Target<T> {
    value: T,
    breaker: CircuitBreaker,
}

/// Which target a call tries first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AsListed,
    RoundRobin,
}

impl<T> Failover<T> {
    /// The maximum number of targets.
    pub const TARGETS_MAX: usize = 64;

    /// Makes a call at one target after another, until one does not fail.
    ///
    /// Cancel safe: a dropped call does not count.
    ///
    /// # Errors
    /// Fails with the last error, if all targets have failed; with the refusal of the breakers, if none was called.
    pub async fn call<'a, F, Fut, V, E>(&'a self, mut operation: F) -> Result<V, Error<E>>
    where
        F: FnMut(&'a T) -> Fut,
        Fut: Future<Output = Result<V, E>>,
        E: Classify,
    {
        self.run(|target| {
            let call = operation(target);
            async { call.await.map_err(Error::once) }
        })
        .await
    }

    /// As [`call`](Failover::call), for calls that have policies of their own. The breaker of a target sees the result of all
    /// attempts of such a call as one.
    ///
    /// # Errors
    /// The same as for `call`.
    pub async fn run<'a, F, C, V, E>(&'a self, mut operation: F) -> Result<V, Error<E>>
    where
        F: FnMut(&'a T) -> C,
        C: IntoFuture<Output = Result<V, Error<E>>>,
    {
        let mut round = Round::new(&self.shared);
        loop {
            match round.turn() {
                Turn::Call(index, permit) => {
                    let result = operation(&self.shared.targets[index].value).await;
                    if let Some(result) = round.after(index, permit, result) {
                        return result;
                    }
                }
                Turn::GiveUp(error) => return Err(error),
            }
        }
    }

    /// As [`call`](Failover::call), for an operation that blocks.
    ///
    /// ```
    /// use rewheel::{Failover, GiveUpReason};
    /// use std::{fs, io};
    ///
    /// let paths = Failover::over(["no/such/file", "Cargo.toml"]).build();
    /// let read = |path: &&str| fs::read_to_string(path).map_err(|_| io::Error::from(io::ErrorKind::TimedOut));
    /// assert!(paths.call_blocking(read).unwrap().contains("rewheel"));
    /// ```
    ///
    /// # Errors
    /// The same as for `call`.
    pub fn call_blocking<'a, V, E: Classify>(
        &'a self,
        mut operation: impl FnMut(&'a T) -> Result<V, E>,
    ) -> Result<V, Error<E>> {
        self.run_blocking(|target| operation(target).map_err(Error::once))
    }

    /// As [`run`](Failover::run), for calls that block.
    ///
    /// # Errors
    /// The same as for `call`.
    pub fn run_blocking<'a, V, E>(
        &'a self,
        mut operation: impl FnMut(&'a T) -> Result<V, Error<E>>,
    ) -> Result<V, Error<E>> {
        let mut round = Round::new(&self.shared);
        loop {
            match round.turn() {
                Turn::Call(index, permit) => {
                    let result = operation(&self.shared.targets[index].value);
                    if let Some(result) = round.after(index, permit, result) {
                        return result;
                    }
                }
                Turn::GiveUp(error) => return Err(error),
            }
        }
    }

    /// Returns the targets.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = &T> {
        self.shared.targets.iter().map(|target| &target.value)
    }

    /// Returns the circuit breaker of a target, counted from 0; `None` if there is no such target.
    pub fn breaker(&self, target: usize) -> Option<&CircuitBreaker> {
        self.shared.targets.get(target).map(|target| &target.breaker)
    }

    /// Returns whether a target is left out at present, because it failed more than the others.
    pub fn is_ejected(&self, target: usize) -> bool {
        target < self.shared.targets.len() && self.shared.is_ejected(target)
    }
}

impl<T> Shared<T> {
    fn is_ejected(&self, target: usize) -> bool {
        let ejections = self.ejections.as_ref();
        ejections.is_some_and(|(_, ejections)| ejections.is_out(target, self.clock.now()))
    }
}

impl<T> Clone for Failover<T> {
    fn clone(&self) -> Failover<T> {
        Failover { shared: Arc::clone(&self.shared) }
    }
}

impl<T: fmt::Debug> fmt::Debug for Failover<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failover").field("shared", &self.shared).finish()
    }
}

impl<T> fmt::Display for Failover<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { targets, order, tries_max, ejections, name, .. } = &*self.shared;
        f.write_str("failover")?;
        if !name.is_empty() {
            write!(f, " {name:?}")?;
        }
        let order = match order {
            Order::AsListed => "in this order",
            Order::RoundRobin => "in turns",
        };
        write!(f, ": {} targets {order}, at most {tries_max} for one call", targets.len())?;
        if let Some(target) = targets.first() {
            write!(f, "; circuit breaker of each: {}", target.breaker.machine().describe())?;
        }
        match ejections {
            Some((rules, _)) => write!(f, "; {rules}"),
            None => Ok(()),
        }
    }
}

impl crate::Explanation {
    /// Describes a call under this pipeline at several targets, as [`Failover::run`] makes it.
    ///
    /// ```
    /// use rewheel::{Failover, Pipeline, seconds};
    ///
    /// let regions = Failover::over(["eu.example", "us.example"]).build();
    /// let explained = Pipeline::new().timeout(seconds(2)).explain().with_failover(&regions);
    /// assert_eq!((explained.time_max, explained.amplification_max), (Some(seconds(4)), 2));
    /// assert!(explained.to_string().starts_with("failover: 2 targets in this order, at most 2 for one call"));
    /// ```
    #[must_use]
    pub fn with_failover<T>(mut self, failover: &Failover<T>) -> crate::Explanation {
        let tries = u32::try_from(failover.shared.tries_max).unwrap_or(u32::MAX);
        self.steps.insert(0, failover.to_string());
        self.time_max = self.time_max.map(|time| time.saturating_mul(tries));
        self.amplification_max = self.amplification_max.saturating_mul(u64::from(tries));
        self
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
