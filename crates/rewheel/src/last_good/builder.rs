//! Builds a cache of last good values.

use super::LastGood;
use crate::clock::Clock;
use crate::duration::text;
use crate::keyed::checked_keys_max;
use crate::observer::Observer;
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// Builder of a [`LastGood`].
///
/// Defaults: no stale value is returned; 1,000 keys; after 30 s another caller takes over a fetch.
#[derive(Clone, Debug)]
pub struct LastGoodBuilder {
    pub(super) ttl: Duration,
    pub(super) stale_max: Duration,
    pub(super) keys_max: usize,
    pub(super) takeover: Duration,
    pub(super) clock: Clock,
    pub(super) name: Cow<'static, str>,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

const fn checked_ttl(ttl: Duration) -> Result<Duration, NotAllowed> {
    if ttl.is_zero() { Err(not_allowed!("ttl", "use a time above zero")) } else { Ok(ttl) }
}

const fn checked_takeover(time: Duration) -> Result<Duration, NotAllowed> {
    if time.is_zero() {
        Err(not_allowed!("takeover_after", "use a time above zero"))
    } else {
        Ok(time)
    }
}

/// The parameters stand for those of the cache, which are known when it is built.
impl LastGood<(), (), ()> {
    /// Returns a value without a call for this time after it was fetched.
    ///
    /// ```compile_fail
    /// const NOTHING: rewheel::LastGoodBuilder = rewheel::LastGood::ttl(rewheel::seconds(0));
    /// ```
    ///
    /// # Panics
    /// Panics if the time is zero; in a constant that is a compile error.
    #[track_caller]
    pub const fn ttl(ttl: Duration) -> LastGoodBuilder {
        LastGoodBuilder::new(valid(checked_ttl(ttl)))
    }

    /// As [`ttl`](LastGood::ttl), without the panic.
    ///
    /// ```
    /// use rewheel::{LastGood, seconds};
    ///
    /// let error = LastGood::try_ttl(seconds(0)).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid ttl `0s`: use a time above zero");
    /// ```
    ///
    /// # Errors
    /// Rejects a time of zero.
    pub fn try_ttl(ttl: Duration) -> Result<LastGoodBuilder, SettingError> {
        let ttl = checked_ttl(ttl).map_err(|rule| rule.with(text(ttl)))?;
        Ok(LastGoodBuilder::new(ttl))
    }
}

impl LastGoodBuilder {
    const fn new(ttl: Duration) -> LastGoodBuilder {
        LastGoodBuilder {
            ttl,
            stale_max: Duration::ZERO,
            keys_max: 1_000,
            takeover: Duration::from_secs(30),
            clock: Clock::system(),
            name: Cow::Borrowed(""),
            observer: None,
        }
    }

    /// If a fetch fails, returns the last good value, for this time after its time to live is over.
    #[must_use]
    pub const fn stale_if_error(mut self, time: Duration) -> LastGoodBuilder {
        self.stale_max = time;
        self
    }

    /// Sets the maximum number of keys. If there are more, values that are rarely used are removed.
    ///
    /// # Panics
    /// Panics if the number is zero; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn keys_max(mut self, keys: usize) -> LastGoodBuilder {
        self.keys_max = valid(checked_keys_max(keys));
        self
    }

    /// As [`keys_max`](LastGoodBuilder::keys_max), without the panic.
    ///
    /// # Errors
    /// Rejects zero.
    pub fn try_keys_max(mut self, keys: usize) -> Result<LastGoodBuilder, SettingError> {
        self.keys_max = checked_keys_max(keys).map_err(|rule| rule.with(keys))?;
        Ok(self)
    }

    /// Sets the time after which a waiting caller makes the call as well. It should be longer than any fetch takes: the fetch
    /// has a timeout of its own. It matters only if the future of the caller that fetches exists but is not polled.
    ///
    /// # Panics
    /// Panics if the time is zero; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn takeover_after(mut self, time: Duration) -> LastGoodBuilder {
        self.takeover = valid(checked_takeover(time));
        self
    }

    /// As [`takeover_after`](LastGoodBuilder::takeover_after), without the panic.
    ///
    /// # Errors
    /// Rejects a time of zero.
    pub fn try_takeover_after(mut self, time: Duration) -> Result<LastGoodBuilder, SettingError> {
        self.takeover = checked_takeover(time).map_err(|rule| rule.with(text(time)))?;
        Ok(self)
    }

    /// Uses another clock. [`Clock::coarse`] is exact enough for most times to live, and makes a hit faster.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> LastGoodBuilder {
        self.clock = clock.into();
        self
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> LastGoodBuilder {
        self.name = name.into();
        self
    }

    /// Reports events to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> LastGoodBuilder {
        self.observer = Some(observer);
        self
    }

    /// Creates the cache, for keys `K`, values `V`, and calls that fail with `E`.
    pub fn build<K: Hash + Eq + Clone, V, E>(self) -> LastGood<K, V, E> {
        LastGood::new(self)
    }
}
