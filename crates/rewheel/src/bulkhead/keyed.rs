//! One bulkhead per key.

use super::{Bulkhead, BulkheadBuilder, BulkheadPermit};
use crate::error::Refused;
use crate::keyed::Keyed;
use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

/// One [`Bulkhead`] per key, created when the key is first used, for a limited number of keys. Clones share them.
///
/// One slow tenant or host then uses up its own slots only. When a new key exceeds the limit, keys without running or waiting
/// calls are removed. If there are none, all further keys share one bulkhead until there is room again; a key that gets room then
/// may for a moment have calls in both.
///
/// ```
/// use rewheel::Bulkhead;
///
/// let per_tenant = Bulkhead::concurrency(1).keyed::<String>(10_000);
/// let _slot = per_tenant.try_acquire("a")?;
///
/// assert!(per_tenant.try_acquire("a").is_err());
/// assert!(per_tenant.try_acquire("b").is_ok());
/// # Ok::<_, rewheel::Refused>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyedBulkhead<K> {
    shared: Arc<Bulkheads<K>>,
}

#[derive(Debug)]
struct Bulkheads<K> {
    by_key: Keyed<K, Own>,
    template: BulkheadBuilder,
}

/// The bulkhead of a key in the map. Unlike a handle, a clone shares nothing: the map clones the shared bulkhead for a new key.
#[derive(Debug)]
struct Own(Bulkhead);

impl Clone for Own {
    fn clone(&self) -> Own {
        Own(self.0.shared.config.clone().build())
    }
}

impl Own {
    /// A permit and a waiting caller have a handle of their own.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0.shared) == 1
    }
}

impl BulkheadBuilder {
    /// Creates one bulkhead per key, for at most this many keys.
    ///
    /// # Panics
    /// Panics if the number is zero.
    pub fn keyed<K: Hash + Eq + Clone>(self, keys_max: usize) -> KeyedBulkhead<K> {
        let by_key = Keyed::new(keys_max).sharing_when_full();
        KeyedBulkhead { shared: Arc::new(Bulkheads { by_key, template: self }) }
    }
}

impl<K: Hash + Eq + Clone> KeyedBulkhead<K> {
    /// Returns the bulkhead of this key. Do not keep it: as long as you do, the key keeps its place among the keys.
    pub fn get<Q>(&self, key: &Q) -> Bulkhead
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let Bulkheads { by_key, template } = &*self.shared;
        by_key.with(key, || Own(template.clone().build()), Own::is_unused, |own| own.0.clone())
    }

    /// Takes a slot of this key if one is free now and no other caller waits for it.
    ///
    /// # Errors
    /// Refused otherwise.
    pub fn try_acquire<Q>(&self, key: &Q) -> Result<BulkheadPermit, Refused>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        self.get(key).try_acquire()
    }

    /// Takes a slot of this key, and waits for it if necessary.
    ///
    /// Cancel safe: a dropped call leaves the queue.
    ///
    /// # Errors
    /// The same as for [`Bulkhead::acquire`].
    pub async fn acquire<Q>(&self, key: &Q) -> Result<BulkheadPermit, Refused>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let bulkhead = self.get(key);
        bulkhead.acquire().await
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

impl<K> KeyedBulkhead<K> {
    pub(crate) fn name(&self) -> &str {
        &self.shared.template.name
    }

    pub(crate) fn describe(&self) -> String {
        self.shared.template.clone().build().describe()
    }

    /// Returns the maximum wait of a call, if it is limited.
    pub(crate) fn wait_max(&self) -> Option<std::time::Duration> {
        self.shared.template.wait_max_of_call()
    }
}
