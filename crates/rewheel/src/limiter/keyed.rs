//! One rate limit per key.

use super::sliding::Sliding;
use super::{RateLimiterBuilder, Rule, refusal};
use crate::clock::Moment;
use crate::duration::nanos;
use crate::error::Refused;
use crate::keyed::Keyed;
use crate::observer::refused;
use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

/// One rate limiter per key, for a limited number of keys. Clones share them.
///
/// When a new key exceeds the limit, keys whose full limit is available again are removed, because a new limiter would have
/// the same state. If there are no such keys, all further keys share one limiter. So very many random keys cannot fill the
/// memory, and no key gets a new limit.
///
/// ```
/// use rewheel::RateLimiter;
///
/// let per_tenant = RateLimiter::per_second(100).burst(1).keyed::<String>(10_000);
///
/// assert!(per_tenant.check("a").is_ok());
/// assert!(per_tenant.check("a").is_err());
/// assert!(per_tenant.check("b").is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct KeyedRateLimiter<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    states: Keyed<K, State>,
    config: RateLimiterBuilder,
    resolution: u64,
}

#[derive(Clone, Debug)]
enum State {
    /// When the bucket is full again.
    Bucket(u64),
    Window(Box<Sliding>),
}

impl<K: Hash + Eq + Clone> KeyedRateLimiter<K> {
    pub(super) fn new(mut config: RateLimiterBuilder, keys_max: usize) -> KeyedRateLimiter<K> {
        config.adapt_to_clock();
        let resolution = nanos(config.clock.resolution());
        let states = Keyed::new(keys_max).sharing_when_full();
        KeyedRateLimiter { shared: Arc::new(Shared { states, config, resolution }) }
    }

    /// Asks for one call of this key to be admitted now.
    ///
    /// # Errors
    /// Refused if the key's limit is reached, with the time to ask again.
    #[inline]
    pub fn check<Q>(&self, key: &Q) -> Result<(), Refused>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        self.check_n(key, 1)
    }

    /// Asks for a call of this key with weight `n` to be admitted now.
    ///
    /// # Errors
    /// The same as for [`check`](KeyedRateLimiter::check). A weight above the burst is always refused.
    #[inline]
    pub fn check_n<Q>(&self, key: &Q, n: u32) -> Result<(), Refused>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        // Read before the lock is taken: a late reading admits fewer, and the lock is held for a shorter time.
        let shared = &*self.shared;
        let now = shared.config.clock.now_in_place();
        let taken = shared.states.with(
            key,
            || shared.fresh_state(),
            |state| shared.is_fresh(state, now),
            |state| shared.take(state, n, now),
        );
        match taken {
            Ok(()) => {
                shared.config.admitted(std::time::Duration::ZERO);
                Ok(())
            }
            Err(wait) => {
                let refusal = refusal(&shared.config.rule, n, wait);
                Err(refused(shared.config.observer.as_ref(), &shared.config.name, refusal))
            }
        }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.shared.states.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K> KeyedRateLimiter<K> {
    pub(crate) fn name(&self) -> &str {
        &self.shared.config.name
    }

    pub(crate) fn describe(&self) -> String {
        self.shared.config.to_string()
    }
}

impl<K> Shared<K> {
    fn fresh_state(&self) -> State {
        match self.config.rule {
            Rule::Bucket(_) => State::Bucket(0),
            Rule::Window(_) => State::Window(Box::new(Sliding::new())),
        }
    }

    fn is_fresh(&self, state: &State, now: Moment) -> bool {
        match (state, self.config.rule) {
            (State::Bucket(full_at), _) => *full_at <= now.as_nanos(),
            (State::Window(window), Rule::Window(limit)) => {
                Sliding::clone(window).is_fresh(limit, now)
            }
            (State::Window(_), Rule::Bucket(_)) => false,
        }
    }

    #[inline]
    fn take(&self, state: &mut State, n: u32, now: Moment) -> Result<(), u64> {
        let n = u64::from(n);
        match (state, self.config.rule) {
            (State::Bucket(full_at), Rule::Bucket(bucket)) => {
                let latest = now.as_nanos().saturating_add(self.resolution);
                *full_at = bucket.take(*full_at, n, now, latest)?;
                Ok(())
            }
            (State::Window(window), Rule::Window(limit)) if n <= limit.calls => {
                window.take(limit, n, now).map_err(nanos)
            }
            (State::Bucket(_) | State::Window(_), Rule::Bucket(_) | Rule::Window(_)) => Err(0),
        }
    }
}
