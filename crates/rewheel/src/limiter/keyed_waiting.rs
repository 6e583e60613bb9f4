//! Lets callers wait for the rate limit of their key.

use super::keyed::{KeyedRateLimiter, State};
use super::sliding::Sliding;
use super::{RateLimiter, RateLimiterBuilder, State as Single};
use crate::error::Refused;
use crate::sync::lock;
use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

impl<K: Hash + Eq + Clone> KeyedRateLimiter<K> {
    /// Waits until one call of this key is admitted, in order of arrival among the callers of this key.
    ///
    /// [`wait_max`](RateLimiterBuilder::wait_max) and [`queue_max`](RateLimiterBuilder::queue_max) apply to each key. While callers
    /// of a key wait, the key needs more memory, and [`check`](KeyedRateLimiter::check) refuses its calls.
    ///
    /// ```
    /// use rewheel::{ManualClock, RateLimiter, millis};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), rewheel::Refused> {
    /// let clock = ManualClock::new();
    /// let per_tenant = RateLimiter::per_second(10).burst(1).clock(&clock).keyed::<String>(10_000);
    /// per_tenant.acquire("a").await?;
    /// clock.drive(per_tenant.acquire("a")).await?;
    /// assert_eq!(clock.elapsed(), millis(100));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel safe: a dropped call gives its position to the next caller and uses no tokens.
    ///
    /// # Errors
    /// Refused if the wait exceeds `wait_max`, and if too many callers of this key are waiting.
    pub async fn acquire<Q>(&self, key: &Q) -> Result<(), Refused>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        self.acquire_n(key, 1).await
    }

    /// Like [`acquire`](KeyedRateLimiter::acquire), for a call of weight `n`.
    ///
    /// # Errors
    /// The same as for `acquire`. A weight above the burst is always refused.
    pub async fn acquire_n<Q>(&self, key: &Q, n: u32) -> Result<(), Refused>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        match self.take_or_line(key, n) {
            None => Ok(()),
            Some(line) => line.acquire_n(n).await,
        }
    }

    /// Takes tokens if there are enough and no caller waits; otherwise returns the limiter of this key, in which callers can wait.
    /// As long as that exists, the key keeps its place among the keys.
    pub(crate) fn take_or_line<Q>(&self, key: &Q, n: u32) -> Option<RateLimiter>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let shared = &*self.shared;
        let now = shared.config.clock.now_in_place();
        let line = shared.states.with(
            key,
            || shared.fresh_state(),
            |state| shared.is_fresh(state, now),
            |state| {
                let line = match state.line_in_use() {
                    Some(line) => return Some(line),
                    None if shared.take(state, n, now).is_ok() => return None,
                    None => RateLimiter::continuing(&shared.config, state),
                };
                *state = State::Line(line.clone());
                Some(line)
            },
        );
        if line.is_none() {
            shared.config.admitted(Duration::ZERO);
        }
        line
    }
}

impl State {
    /// Returns this state without a line. A line in use has handles besides the one of the map.
    pub(super) fn without_line(&self) -> State {
        match self {
            State::Bucket(full_at) => State::Bucket(*full_at),
            State::Window(window) => State::Window(window.clone()),
            State::Line(line) => match &line.shared.state {
                Single::Bucket(bucket) => State::Bucket(bucket.full_at()),
                Single::Window(window) => State::Window(Box::new(lock(window).clone())),
            },
        }
    }

    /// Returns the line if callers may wait in it; otherwise the state no longer has one.
    pub(super) fn line_in_use(&mut self) -> Option<RateLimiter> {
        let State::Line(line) = &*self else { return None };
        if Arc::strong_count(&line.shared) > 1 {
            return Some(line.clone());
        }
        *self = self.without_line();
        None
    }
}

impl RateLimiter {
    /// Creates the limiter of a key that has used some of its limit already.
    fn continuing(config: &RateLimiterBuilder, state: &State) -> RateLimiter {
        let limiter = config.clone().build_adapted();
        match (state, &limiter.shared.state) {
            (State::Bucket(full_at), Single::Bucket(bucket)) => bucket.set_full_at(*full_at),
            (State::Window(from), Single::Window(to)) => *lock(to) = Sliding::clone(from),
            (State::Bucket(_) | State::Window(_) | State::Line(_), _) => {}
        }
        limiter
    }
}
