//! A map with one value per key and a bounded number of keys.

use crate::setting::{NotAllowed, not_allowed, valid};
use crate::sync::{Mutex, OwnLine, lock, lock_soon};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

/// A map that callers may fill with any keys, with a maximum number of entries.
///
/// When it is full, values that have nothing to remember are removed first. If there are none,
/// [`WhenFull`] decides.
#[derive(Debug)]
pub(crate) struct Keyed<K, V> {
    shards: Box<[ShardLock<K, V>]>,
    hasher: DefaultHashBuilder,
    keys_max_per_shard: usize,
    when_full: WhenFull,
}

/// What a new key gets when every value has something to remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// The slot of the least recently used key.
    ReplaceOldest,
    /// One value that all such keys share.
    Share,
}

type ShardLock<K, V> = OwnLine<Mutex<Shard<K, V>>>;

#[derive(Debug)]
struct Shard<K, V> {
    entries: HashTable<Entry<K, V>>,
    shared: Option<V>,
    /// Increases with every use; gives the age of an entry.
    uses: u64,
    /// No sweep before this use, so that a flood of keys does not sweep in vain every time.
    sweep_at: u64,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    used: u64,
}

/// Refuses a map without room for a key.
pub(crate) const fn checked_keys_max(keys_max: usize) -> Result<usize, NotAllowed> {
    if keys_max > 0 { Ok(keys_max) } else { Err(not_allowed!("keys_max", "use 1 or more")) }
}

impl<K, V> Keyed<K, V> {
    /// Enough that two threads rarely use the same shard, few enough that small maps stay exact.
    const SHARDS_MAX: usize = 64;
    const KEYS_PER_SHARD_MIN: usize = 64;

    pub(crate) fn new(keys_max: usize) -> Keyed<K, V> {
        let keys_max = valid(checked_keys_max(keys_max));
        let shards = (keys_max / Self::KEYS_PER_SHARD_MIN).clamp(1, Self::SHARDS_MAX);
        let shard = || {
            let entries = HashTable::new();
            OwnLine(Mutex::new(Shard { entries, shared: None, uses: 0, sweep_at: 0 }))
        };
        Keyed {
            shards: (0..shards).map(|_| shard()).collect(),
            hasher: DefaultHashBuilder::default(),
            keys_max_per_shard: keys_max / shards,
            when_full: WhenFull::ReplaceOldest,
        }
    }

    pub(crate) fn sharing_when_full(mut self) -> Keyed<K, V> {
        self.when_full = WhenFull::Share;
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).entries.len()).sum()
    }
}

impl<K: Hash + Eq, V: Clone> Keyed<K, V> {
    /// Uses the value of a key, under the lock of its shard: `work` must be short and must not call
    /// foreign code. `fresh` returns whether a value equals a new one.
    #[inline]
    pub(crate) fn with<Q, R>(
        &self,
        key: &Q,
        make: impl FnOnce() -> V,
        fresh: impl Fn(&V) -> bool,
        work: impl FnOnce(&mut V) -> R,
    ) -> R
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let hash = self.hasher.hash_one(key);
        let mut shard = lock_soon(self.shard(hash));
        let shard = &mut *shard;
        shard.uses += 1;
        if let Some(entry) = shard.entries.find_mut(hash, |entry| entry.key.borrow() == key) {
            entry.used = shard.uses;
            return work(&mut entry.value);
        }
        if !self.has_room(shard, &fresh) {
            return work(shard.shared.get_or_insert_with(make));
        }
        // Any key may be one of those that used the shared value, so its usage applies to the new
        // key.
        shard.shared.take_if(|shared| fresh(shared));
        let value = shard.shared.clone().unwrap_or_else(make);
        let entry = Entry { key: key.to_owned(), value, used: shard.uses };
        let rehash = |entry: &Entry<K, V>| self.hasher.hash_one(entry.key.borrow());
        let mut entry = shard.entries.insert_unique(hash, entry, rehash);
        work(&mut entry.get_mut().value)
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Mutex<Shard<K, V>> {
        // The hash table uses the lowest and the highest bits of the hash; these are between them.
        let bits = (hash >> 20) & u64::from(u32::MAX);
        &self.shards[((bits * self.shards.len() as u64) >> 32) as usize]
    }

    #[cold]
    fn has_room(&self, shard: &mut Shard<K, V>, fresh: impl Fn(&V) -> bool) -> bool {
        if shard.entries.len() < self.keys_max_per_shard {
            return true;
        }
        // Searching the oldest costs as much as a sweep, so skipping the sweep would save nothing.
        if self.when_full == WhenFull::ReplaceOldest || shard.uses >= shard.sweep_at {
            shard.entries.retain(|entry| !fresh(&entry.value));
            shard.sweep_at = shard.uses + 1 + (shard.entries.len() / 8) as u64;
        }
        if shard.entries.len() >= self.keys_max_per_shard
            && self.when_full == WhenFull::ReplaceOldest
            && let Some(oldest) = shard.entries.iter().map(|entry| entry.used).min()
        {
            shard.entries.retain(|entry| entry.used != oldest);
        }
        shard.entries.len() < self.keys_max_per_shard
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Keyed;

    fn count(keyed: &Keyed<u32, u32>, key: u32, fresh: impl Fn(&u32) -> bool) -> u32 {
        keyed.with(
            &key,
            || 0,
            fresh,
            |value| {
                *value += 1;
                *value
            },
        )
    }

    #[test]
    fn never_holds_more_keys_than_its_bound() {
        for keys_max in [1, 2, 63, 64, 65, 128, 1_000, 5_000] {
            let keyed = Keyed::new(keys_max);
            for key in 0..20_000 {
                count(&keyed, key, |_| false);
            }
            assert!(keyed.len() <= keys_max, "{} keys in {keys_max}", keyed.len());
            assert!(keyed.len() >= keys_max / 2, "only {} of {keys_max} used", keyed.len());
        }
    }

    #[test]
    fn forgets_what_has_nothing_to_remember_first() {
        let keyed = Keyed::new(3);
        let once = |value: &u32| *value < 2;
        for key in [1, 1, 2, 3, 3, 4] {
            count(&keyed, key, once);
        }
        assert_eq!(
            [1, 3].map(|key| count(&keyed, key, once)),
            [3, 3],
            "the state of a key in use was removed"
        );
    }

    #[test]
    fn replaces_the_key_that_was_used_longest_ago() {
        let keyed = Keyed::new(2);
        for key in [1, 2, 1, 3] {
            count(&keyed, key, |_| false);
        }
        assert_eq!(count(&keyed, 1, |_| false), 3);
        assert_eq!(count(&keyed, 2, |_| false), 1, "the oldest key was kept");
    }

    #[test]
    fn keys_without_room_share_a_value_if_told_to() {
        let keyed = Keyed::new(1).sharing_when_full();
        assert_eq!([1, 2, 3, 1].map(|key| count(&keyed, key, |_| false)), [1, 1, 2, 2]);
        assert_eq!(keyed.len(), 1);
    }
}
