//! Counts what a breaker saw since it was built.

use super::Outcome;
use crate::sync::{AtomicU64, Ordering, OwnLine};

/// What a breaker has counted since it was built. [`reset`](crate::CircuitBreaker::reset) does not
/// clear it.
///
/// ```
/// use rewheel::CircuitBreaker;
///
/// let breaker = CircuitBreaker::consecutive(1).count_calls().build();
/// breaker.acquire()?.success();
/// breaker.acquire()?.failure();
/// assert!(breaker.acquire().is_err());
///
/// let totals = breaker.snapshot().totals;
/// assert_eq!((totals.calls, totals.failures), (Some(2), 1));
/// assert_eq!((totals.refusals, totals.transitions), (1, 1));
/// # Ok::<_, rewheel::Refused>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerTotals {
    /// Calls that ended in a success or a failure, probes included. Known only with
    /// [`count_calls`](crate::CircuitBreakerBuilder::count_calls).
    pub calls: Option<u64>,
    /// Calls that failed, also those that ended after the state had changed.
    pub failures: u64,
    /// Calls that the breaker refused.
    pub refusals: u64,
    /// State changes of the breaker.
    pub transitions: u64,
}

/// The counters. Apart from the breaker's word, which every call reads.
#[derive(Debug)]
pub(super) struct Totals {
    calls: Option<OwnLine<AtomicU64>>,
    rare: OwnLine<Rare>,
}

/// What a healthy breaker does not count.
#[derive(Debug)]
struct Rare {
    failures: AtomicU64,
    refusals: AtomicU64,
    transitions: AtomicU64,
}

impl Totals {
    pub(super) fn new(counts_calls: bool) -> Totals {
        let zero = || AtomicU64::new(0);
        Totals {
            calls: counts_calls.then(|| OwnLine(zero())),
            rare: OwnLine(Rare { failures: zero(), refusals: zero(), transitions: zero() }),
        }
    }

    #[inline]
    pub(super) fn ended(&self, outcome: Outcome) {
        if let Some(calls) = &self.calls {
            calls.fetch_add(1, Ordering::Relaxed);
        }
        if outcome == Outcome::Failure {
            self.rare.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn refused(&self) {
        self.rare.refusals.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn changed(&self) {
        self.rare.transitions.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> BreakerTotals {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        BreakerTotals {
            calls: self.calls.as_deref().map(load),
            failures: load(&self.rare.failures),
            refusals: load(&self.rare.refusals),
            transitions: load(&self.rare.transitions),
        }
    }
}
