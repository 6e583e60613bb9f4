//! One client throttle per key.

use super::{ClientThrottle, ClientThrottleBuilder};
use crate::keyed::Keyed;
use crate::sync::lock_soon;
use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

/// One [`ClientThrottle`] per key, created when the key is first used, for a limited number of keys. Clones share them.
///
/// When a new key exceeds the limit, keys that reject nothing are removed first, then the least recently used key.
///
/// ```
/// use rewheel::ClientThrottle;
///
/// let per_host = ClientThrottle::accepts_times(2.0).keyed::<String>(1_000);
/// per_host.get("a").acquire()?.accepted();
/// assert_eq!((per_host.len(), per_host.get("a").rejects()), (1, 0.0));
/// # Ok::<_, rewheel::Refused>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyedClientThrottle<K> {
    shared: Arc<Throttles<K>>,
}

#[derive(Debug)]
struct Throttles<K> {
    by_key: Keyed<K, ClientThrottle>,
    template: ClientThrottleBuilder,
}

impl ClientThrottleBuilder {
    /// Creates one throttle per key, for at most this many keys.
    ///
    /// # Panics
    /// Panics if the number is zero.
    pub fn keyed<K: Hash + Eq + Clone>(self, keys_max: usize) -> KeyedClientThrottle<K> {
        let throttles = Throttles { by_key: Keyed::new(keys_max), template: self };
        KeyedClientThrottle { shared: Arc::new(throttles) }
    }
}

impl<K: Hash + Eq + Clone> KeyedClientThrottle<K> {
    /// Returns the throttle of this key.
    pub fn get<Q>(&self, key: &Q) -> ClientThrottle
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        self.shared.by_key.with(
            key,
            || self.shared.template.clone().build(),
            ClientThrottle::is_fresh,
            |throttle| throttle.clone(),
        )
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

impl<K> KeyedClientThrottle<K> {
    pub(crate) fn name(&self) -> &str {
        &self.shared.template.name
    }

    pub(crate) fn describe(&self) -> String {
        self.shared.template.to_string()
    }
}

impl ClientThrottle {
    /// Returns whether a new throttle would reject as few calls.
    fn is_fresh(&self) -> bool {
        let config = &self.shared.config;
        let (requests, accepts) = lock_soon(&self.shared.window).counts(config.clock.now());
        super::excess(requests, accepts, config.factor) == 0 && Arc::strong_count(&self.shared) == 1
    }
}
