//! One retry budget per key.

use super::{RetryBudget, RetryBudgetBuilder};
use crate::keyed::Keyed;
use crate::sync::Ordering;
use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

/// One [`RetryBudget`] per key, created when the key is first used, for a limited number of keys. Clones share them.
///
/// With one budget for all hosts, the failures of one host use up the retries of the others. When a new key exceeds the limit, keys
/// with a full balance are removed, because a new budget would have the same balance. If there are none, all further keys share
/// one budget. So no key gets a new balance because there are many keys.
///
/// ```
/// use rewheel::{Retry, RetryBudget, Retryable, GiveUpReason, millis};
/// use std::io;
///
/// let per_host = RetryBudget::ratio(0.1).floor_per_second(0).burst(1).keyed::<String>(1_000);
/// let get = |host: &str| {
///     (|| Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut)))
///         .retry(Retry::fixed(millis(0)).attempts_max(3))
///         .retry_budget(&per_host.get(host))
///         .call()
/// };
/// let [first, second] = ["a", "b"].map(|host| get(host).unwrap_err());
/// assert_eq!((first.attempts(), first.reason()), (2, GiveUpReason::BudgetExhausted));
/// assert_eq!(second.attempts(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct KeyedRetryBudget<K> {
    shared: Arc<Budgets<K>>,
}

#[derive(Debug)]
struct Budgets<K> {
    by_key: Keyed<K, Own>,
    template: RetryBudgetBuilder,
}

/// The budget of a key in the map. A clone has the same balance, but does not share it: the map clones the shared budget for a new
/// key.
#[derive(Debug)]
struct Own {
    budget: RetryBudget,
    template: RetryBudgetBuilder,
}

impl Own {
    fn new(template: &RetryBudgetBuilder) -> Own {
        Own { budget: template.clone().build(), template: template.clone() }
    }

    fn is_fresh(&self) -> bool {
        let shared = &self.budget.shared;
        let is_full = shared.balance.load(Ordering::Relaxed) + super::TOKEN > shared.balance_max;
        let is_floor_full = shared
            .floor
            .as_ref()
            .is_none_or(|floor| floor.available(shared.clock.now()) >= floor.burst());
        is_full && is_floor_full && Arc::strong_count(shared) == 1
    }
}

impl Clone for Own {
    fn clone(&self) -> Own {
        let own = Own::new(&self.template);
        let (from, to) = (&self.budget.shared, &own.budget.shared);
        to.balance.store(from.balance.load(Ordering::Relaxed), Ordering::Relaxed);
        if let (Some(from), Some(to)) = (&from.floor, &to.floor) {
            to.set_full_at(from.full_at());
        }
        own
    }
}

impl RetryBudgetBuilder {
    /// Creates one budget per key, for at most this many keys.
    ///
    /// # Panics
    /// Panics if the number is zero.
    pub fn keyed<K: Hash + Eq + Clone>(self, keys_max: usize) -> KeyedRetryBudget<K> {
        let by_key = Keyed::new(keys_max).sharing_when_full();
        KeyedRetryBudget { shared: Arc::new(Budgets { by_key, template: self }) }
    }
}

impl<K: Hash + Eq + Clone> KeyedRetryBudget<K> {
    /// Returns the budget of this key. Do not keep it: as long as you do, the key keeps its place among the keys.
    pub fn get<Q>(&self, key: &Q) -> RetryBudget
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let Budgets { by_key, template } = &*self.shared;
        by_key.with(key, || Own::new(template), Own::is_fresh, |own| own.budget.clone())
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

impl<K> KeyedRetryBudget<K> {
    pub(crate) fn describe(&self) -> String {
        format!("{}, for each key", self.shared.template.clone().build())
    }
}
