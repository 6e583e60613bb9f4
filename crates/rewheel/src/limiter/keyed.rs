//! One rate limit per key.

use super::sliding::Sliding;
use super::{RateLimiter, RateLimiterBuilder, Rule, refusal};
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
    pub(super) shared: Arc<Shared<K>>,
}

#[derive(Debug)]
pub(super) struct Shared<K> {
    pub(super) states: Keyed<K, State>,
    pub(super) config: RateLimiterBuilder,
    resolution: u64,
}

#[derive(Debug)]
pub(super) enum State {
    /// When the bucket is full again.
    Bucket(u64),
    Window(Box<Sliding>),
    /// Callers wait, or have waited.
    Line(RateLimiter),
}

/// A copy does not share a line: the map copies the shared state for a new key.
impl Clone for State {
    fn clone(&self) -> State {
        self.without_line()
    }
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
            |state| match state {
                State::Line(_) => shared.take_behind_line(state, n, now),
                State::Bucket(_) | State::Window(_) => {
                    shared.take(state, n, now).map_err(Wait::Nanos)
                }
            },
        );
        match taken {
            Ok(()) => {
                shared.config.admitted(std::time::Duration::ZERO);
                Ok(())
            }
            Err(wait) => shared.not_taken(n, wait),
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

    pub(crate) fn wait_max(&self) -> Option<std::time::Duration> {
        (self.shared.config.wait_max < std::time::Duration::MAX)
            .then_some(self.shared.config.wait_max)
    }
}

/// Why a key has no tokens now.
enum Wait {
    Nanos(u64),
    InLine(RateLimiter),
}

impl<K> Shared<K> {
    /// As `take`, for a key whose callers may wait in a line.
    #[cold]
    fn take_behind_line(&self, state: &mut State, n: u32, now: Moment) -> Result<(), Wait> {
        match state.line_in_use() {
            Some(line) => Err(Wait::InLine(line)),
            None => self.take(state, n, now).map_err(Wait::Nanos),
        }
    }

    /// Asks the line, or refuses the call.
    #[cold]
    fn not_taken(&self, n: u32, wait: Wait) -> Result<(), Refused> {
        match wait {
            Wait::InLine(line) => line.check_n(n),
            Wait::Nanos(wait) => {
                let refusal = refusal(&self.config.rule, n, wait);
                Err(refused(self.config.observer.as_ref(), &self.config.name, refusal))
            }
        }
    }

    pub(super) fn fresh_state(&self) -> State {
        match self.config.rule {
            Rule::Bucket(_) => State::Bucket(0),
            Rule::Window(_) => State::Window(Box::new(Sliding::new())),
        }
    }

    pub(super) fn is_fresh(&self, state: &State, now: Moment) -> bool {
        match (state, self.config.rule) {
            (State::Line(line), _) => {
                Arc::strong_count(&line.shared) == 1 && self.is_fresh(&state.without_line(), now)
            }
            (State::Bucket(full_at), _) => *full_at <= now.as_nanos(),
            (State::Window(window), Rule::Window(limit)) => {
                Sliding::clone(window).is_fresh(limit, now)
            }
            (State::Window(_), Rule::Bucket(_)) => false,
        }
    }

    #[inline]
    pub(super) fn take(&self, state: &mut State, n: u32, now: Moment) -> Result<(), u64> {
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
            // A line is asked outside of the lock.
            (State::Bucket(_) | State::Window(_) | State::Line(_), _) => Err(0),
        }
    }
}
