//! A map with one value per key and a bounded number of keys.

use crate::setting::{NotAllowed, not_allowed, valid};
use crate::sync::{AtomicUsize, Mutex, Ordering, OwnLine, lock, lock_soon};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

/// A map that callers may fill with any keys, with a maximum number of entries.
///
/// When it is full, values that have nothing to remember are removed first. If there are none,
/// [`WhenFull`] decides. The keys are spread over shards, so that threads rarely wait for each
/// other; the limit and the shared value are those of the whole map.
#[derive(Debug)]
pub(crate) struct Keyed<K, V> {
    shards: Box<[ShardLock<K, V>]>,
    hasher: DefaultHashBuilder,
    keys_max: usize,
    /// The number of entries of all shards, including one that is about to be inserted.
    keys: OwnLine<AtomicUsize>,
    overflow: OwnLine<Mutex<Overflow<V>>>,
    when_full: WhenFull,
}

/// What a new key gets when every value has something to remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// The slot of a key that was not used for long.
    ReplaceOldest,
    /// One value that all such keys share.
    Share,
}

type ShardLock<K, V> = OwnLine<Mutex<Shard<K, V>>>;

#[derive(Debug)]
struct Shard<K, V> {
    entries: HashTable<Entry<K, V>>,
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

/// The value of all keys without room.
#[derive(Debug)]
struct Overflow<V> {
    shared: Option<V>,
    uses: u64,
    /// As for a shard, for a sweep of all shards.
    sweep_at: u64,
}

/// Refuses a map without room for a key.
pub(crate) const fn checked_keys_max(keys_max: usize) -> Result<usize, NotAllowed> {
    if keys_max > 0 { Ok(keys_max) } else { Err(not_allowed!("keys_max", "use 1 or more")) }
}

impl<K, V> Keyed<K, V> {
    /// Enough that two threads rarely use the same shard, few enough that a sweep of one is useful.
    const SHARDS_MAX: usize = 64;
    const KEYS_PER_SHARD_MIN: usize = 64;

    pub(crate) fn new(keys_max: usize) -> Keyed<K, V> {
        let keys_max = valid(checked_keys_max(keys_max));
        let shards = (keys_max / Self::KEYS_PER_SHARD_MIN).clamp(1, Self::SHARDS_MAX);
        let shard = || {
            let entries = HashTable::new();
            OwnLine(Mutex::new(Shard { entries, uses: 0, sweep_at: 0 }))
        };
        let overflow = Overflow { shared: None, uses: 0, sweep_at: 0 };
        Keyed {
            shards: (0..shards).map(|_| shard()).collect(),
            hasher: DefaultHashBuilder::default(),
            keys_max,
            keys: OwnLine(AtomicUsize::new(0)),
            overflow: OwnLine(Mutex::new(overflow)),
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
        loop {
            let mut guard = lock_soon(self.shard(hash));
            let shard = &mut *guard;
            shard.uses += 1;
            if let Some(entry) = shard.entries.find_mut(hash, |entry| entry.key.borrow() == key) {
                entry.used = shard.uses;
                return work(&mut entry.value);
            }
            if self.has_room(shard, &fresh) {
                let value = self.shared_value(&fresh).unwrap_or_else(make);
                let entry = Entry { key: key.to_owned(), value, used: shard.uses };
                let rehash = |entry: &Entry<K, V>| self.hasher.hash_one(entry.key.borrow());
                let mut entry = shard.entries.insert_unique(hash, entry, rehash);
                return work(&mut entry.get_mut().value);
            }
            // Two shards are never locked at once.
            drop(guard);
            match self.when_full {
                WhenFull::ReplaceOldest => self.remove_one(&fresh),
                WhenFull::Share => {
                    let mut overflow = lock(&self.overflow);
                    overflow.uses += 1;
                    if overflow.uses < overflow.sweep_at {
                        return work(overflow.shared.get_or_insert_with(make));
                    }
                    overflow.sweep_at = overflow.uses + 2 + (self.keys_max / 8) as u64;
                    drop(overflow);
                    self.sweep_all(&fresh);
                }
            }
        }
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Mutex<Shard<K, V>> {
        // The hash table uses the lowest and the highest bits of the hash; these are between them.
        let bits = (hash >> 20) & u64::from(u32::MAX);
        &self.shards[((bits * self.shards.len() as u64) >> 32) as usize]
    }

    /// Returns a copy of the shared value for a new key: any key may be one of those that used the
    /// shared value, so its usage applies to the new key.
    fn shared_value(&self, fresh: impl Fn(&V) -> bool) -> Option<V> {
        if self.when_full == WhenFull::ReplaceOldest {
            return None;
        }
        let mut overflow = lock(&self.overflow);
        overflow.shared.take_if(|shared| fresh(shared));
        overflow.shared.clone()
    }

    /// Reserves room for one more key, in this shard if the map is full.
    #[cold]
    fn has_room(&self, shard: &mut Shard<K, V>, fresh: impl Fn(&V) -> bool) -> bool {
        let reserve = |keys: usize| (keys < self.keys_max).then_some(keys + 1);
        if self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_ok() {
            return true;
        }
        let before = shard.entries.len();
        // Searching the oldest costs as much as a sweep, so skipping the sweep would save nothing.
        if self.when_full == WhenFull::ReplaceOldest || shard.uses >= shard.sweep_at {
            shard.entries.retain(|entry| !fresh(&entry.value));
            shard.sweep_at = shard.uses + 1 + (shard.entries.len() / 8) as u64;
        }
        if shard.entries.len() == before && self.when_full == WhenFull::ReplaceOldest {
            shard.remove_oldest();
        }
        let removed = before - shard.entries.len();
        // The place of one of them is kept for the new key.
        self.keys.fetch_sub(removed.saturating_sub(1), Ordering::Relaxed);
        removed > 0
    }

    /// Removes what has nothing to remember from all shards.
    #[cold]
    fn sweep_all(&self, fresh: impl Fn(&V) -> bool) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.entries.len();
            shard.entries.retain(|entry| !fresh(&entry.value));
            self.keys.fetch_sub(before - shard.entries.len(), Ordering::Relaxed);
        }
    }

    /// Makes room for a key whose own shard is empty.
    #[cold]
    fn remove_one(&self, fresh: impl Fn(&V) -> bool) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.entries.len();
            shard.entries.retain(|entry| !fresh(&entry.value));
            if shard.entries.len() == before {
                shard.remove_oldest();
            }
            let removed = before - shard.entries.len();
            self.keys.fetch_sub(removed, Ordering::Relaxed);
            if removed > 0 {
                return;
            }
        }
    }
}

impl<K, V> Shard<K, V> {
    /// Removes the entry that was not used for the longest time.
    fn remove_oldest(&mut self) {
        if let Some(oldest) = self.entries.iter().map(|entry| entry.used).min() {
            self.entries.retain(|entry| entry.used != oldest);
        }
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
            assert_eq!(keyed.len(), keys_max);
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

    #[test]
    fn all_keys_without_room_share_one_value_however_large_the_map_is() {
        let keyed = Keyed::new(10_000).sharing_when_full();
        for key in 0..10_000 {
            assert_eq!(count(&keyed, key, |_| false), 1, "there is room for {key}");
        }
        let shared: Vec<_> = (10_000..10_100).map(|key| count(&keyed, key, |_| false)).collect();
        assert_eq!(shared, (1..=100).collect::<Vec<_>>());
        assert_eq!(keyed.len(), 10_000);
    }

    #[test]
    fn room_that_other_keys_leave_is_found_in_any_shard() {
        let keyed = Keyed::new(10_000).sharing_when_full();
        for key in 0..10_000 {
            count(&keyed, key, |_| false);
        }
        // From now on nothing has anything to remember: each new key finds room in the end.
        let own = (10_000..20_000).filter(|key| {
            count(&keyed, *key, |value| *value == 1);
            count(&keyed, *key, |value| *value == 1) == 2
        });
        assert!(own.count() > 8_000);
        assert!(keyed.len() <= 10_000, "{} keys", keyed.len());
    }
}
