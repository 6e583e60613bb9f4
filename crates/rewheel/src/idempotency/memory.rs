//! In-memory idempotency store.

use super::key::{Fingerprint, IdempotencyKey};
use super::store::{
    Begin, Begun, Finished, IdempotencyStore, IdempotencyStoreError, Judged, RunId, StoredKey,
    Ticket,
};
use crate::clock::{Clock, Moment};
use crate::duration::nanos;
use crate::sync::{Mutex, lock};
use async_trait::async_trait;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Keeps idempotency keys in memory: for a service with one process, and for tests.
///
/// Limited in keys and bytes. When it is full, it removes the oldest responses early, but not those of the last hour
/// ([`keep_min`](MemoryIdempotency::keep_min)) nor keys whose work still runs: a caller that repeats such a request would run its work twice.
/// If only such keys are left, it refuses new keys. So it needs space for the requests of one hour, and 100,000 keys are enough for 27 requests per
/// second. [`keys_per_caller_max`](MemoryIdempotency::keys_per_caller_max) keeps one caller from using all of it. All keys are lost when the process ends.
///
/// ```
/// use rewheel::{Idempotency, MemoryIdempotency};
///
/// let store = MemoryIdempotency::new(100_000, 64 * 1024 * 1024);
/// let idempotency = Idempotency::new(store);
/// # let _ = idempotency;
/// ```
#[derive(Clone, Debug)]
pub struct MemoryIdempotency {
    shared: Arc<Mutex<Shelf>>,
    clock: Clock,
    keys_max: usize,
    bytes_max: usize,
    keys_per_caller_max: usize,
    keep_min: Duration,
}

#[derive(Debug, Default)]
struct Shelf {
    entries: HashMap<IdempotencyKey, Entry>,
    /// The same keys, ordered by expiry.
    ends: BTreeSet<(Moment, IdempotencyKey)>,
    /// The keys that have a response, ordered by the time of the response.
    answered: BTreeSet<(Moment, IdempotencyKey)>,
    /// The number of keys of each caller.
    callers: HashMap<u64, usize>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    fingerprint: Fingerprint,
    run: RunId,
    /// `None` once there is a response.
    leased_until: Option<Moment>,
    ends: Moment,
    /// `NEVER` until there is a response.
    answered_at: Moment,
    answer: Vec<u8>,
}

impl MemoryIdempotency {
    /// A response of at most this size is stored even if the store is full, because it only records that the response was not kept.
    pub const SMALL_ANSWER_BYTES: usize = 64;

    /// Number of expired keys removed at once when space is needed.
    const PRUNED_AT_ONCE: usize = 64;

    /// Creates a store for this many keys and bytes of responses.
    pub fn new(keys_max: usize, bytes_max: usize) -> MemoryIdempotency {
        MemoryIdempotency {
            shared: Arc::default(),
            clock: Clock::system(),
            keys_max,
            bytes_max,
            keys_per_caller_max: usize::MAX,
            keep_min: Duration::from_secs(3_600),
        }
    }

    /// Sets how many keys one caller may use at the same time; the default is no limit. A caller at its limit is refused, and
    /// the others are not. Use it if callers are separated (see [`IdempotencyKey::new`]).
    #[must_use]
    pub fn keys_per_caller_max(mut self, keys: usize) -> MemoryIdempotency {
        self.keys_per_caller_max = keys;
        self
    }

    /// Sets how long a response is kept at least, even if the store is full; the default is an hour. Choose a time that is longer than
    /// the time in which callers repeat a request.
    #[must_use]
    pub fn keep_min(mut self, keep: Duration) -> MemoryIdempotency {
        self.keep_min = keep;
        self
    }

    /// Uses another clock, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> MemoryIdempotency {
        self.clock = clock.into();
        self
    }

    /// Returns the time up to which responses may be forgotten; none at the start of the clock.
    fn forgotten_until(&self, now: Moment) -> Option<Moment> {
        now.as_nanos().checked_sub(nanos(self.keep_min)).map(Moment::from_nanos)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        lock(&self.shared).entries.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Shelf {
    fn put(&mut self, key: IdempotencyKey, entry: Entry) {
        self.remove(&key);
        self.bytes += entry.answer.len();
        self.ends.insert((entry.ends, key));
        if entry.answered_at < Moment::NEVER {
            self.answered.insert((entry.answered_at, key));
        }
        *self.callers.entry(key.caller()).or_default() += 1;
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &IdempotencyKey) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.ends.remove(&(entry.ends, *key));
        self.answered.remove(&(entry.answered_at, *key));
        if let Some(keys) = self.callers.get_mut(&key.caller()) {
            *keys -= 1;
            if *keys == 0 {
                self.callers.remove(&key.caller());
            }
        }
        self.bytes -= entry.answer.len();
        Some(entry)
    }

    /// Returns whether the run has responded; `None` if it does not have the key.
    fn held(&self, ticket: &Ticket) -> Option<bool> {
        let entry = self.entries.get(&ticket.key).filter(|entry| entry.run == ticket.run)?;
        Some(entry.leased_until.is_none())
    }

    /// Removes responses before they expire, oldest first, until `is_enough` or only recent ones are left.
    fn forget(&mut self, until: Option<Moment>, is_enough: impl Fn(&Shelf) -> bool) {
        while !is_enough(self) {
            match self.answered.first() {
                Some((at, key)) if Some(*at) <= until => {
                    let key = *key;
                    self.remove(&key);
                }
                Some(_) | None => return,
            }
        }
    }

    fn prune(&mut self, now: Moment, limit: usize) -> u64 {
        let over: Vec<IdempotencyKey> = self
            .ends
            .iter()
            .take_while(|(ends, _)| *ends <= now)
            .take(limit)
            .map(|(_, key)| *key)
            .collect();
        over.iter().for_each(|key| drop(self.remove(key)));
        over.len() as u64
    }
}

#[async_trait]
impl IdempotencyStore for MemoryIdempotency {
    async fn begin(&self, begin: &Begin) -> Result<Begun, IdempotencyStoreError> {
        let now = self.clock.now();
        let mut shelf = lock(&self.shared);
        if let Some(entry) = shelf.entries.get(&begin.key) {
            if let Judged::Answer(begun) = entry.seen(now).judge(begin) {
                return Ok(begun);
            }
        } else {
            let full = |shelf: &Shelf| {
                shelf.entries.len() >= self.keys_max || shelf.bytes >= self.bytes_max
            };
            if full(&shelf) {
                shelf.prune(now, MemoryIdempotency::PRUNED_AT_ONCE);
                shelf.forget(self.forgotten_until(now), |shelf| !full(shelf));
            }
            let of_caller = shelf.callers.get(&begin.key.caller()).copied().unwrap_or_default();
            if full(&shelf) || of_caller >= self.keys_per_caller_max {
                return Err(IdempotencyStoreError::Full);
            }
        }
        let leased_until = now.plus(begin.lease);
        let entry = Entry {
            fingerprint: begin.fingerprint,
            run: begin.run,
            leased_until: Some(leased_until),
            ends: leased_until.max(now.plus(begin.keep)),
            answered_at: Moment::NEVER,
            answer: Vec::new(),
        };
        shelf.put(begin.key, entry);
        Ok(Begun::Run)
    }

    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError> {
        let until = self.clock.now().plus(lease);
        let mut shelf = lock(&self.shared);
        if shelf.held(ticket) != Some(false) {
            return Ok(false);
        }
        if let Some(mut entry) = shelf.remove(&ticket.key) {
            (entry.leased_until, entry.ends) = (Some(until), entry.ends.max(until));
            shelf.put(ticket.key, entry);
        }
        Ok(true)
    }

    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError> {
        let now = self.clock.now();
        let mut shelf = lock(&self.shared);
        match shelf.held(ticket) {
            None => return Ok(Finished::Lost),
            Some(true) => return Ok(Finished::Already),
            Some(false) => {}
        }
        let full = |shelf: &Shelf| shelf.bytes.saturating_add(answer.len()) > self.bytes_max;
        if answer.len() > MemoryIdempotency::SMALL_ANSWER_BYTES && full(&shelf) {
            shelf.prune(now, MemoryIdempotency::PRUNED_AT_ONCE);
            shelf.forget(self.forgotten_until(now), |shelf| !full(shelf));
            if full(&shelf) {
                return Err(IdempotencyStoreError::Full);
            }
        }
        let Some(mut entry) = shelf.remove(&ticket.key) else { return Ok(Finished::Lost) };
        (entry.leased_until, entry.ends) = (None, now.plus(ticket.keep));
        entry.answered_at = now;
        entry.answer = answer.to_vec();
        shelf.put(ticket.key, entry);
        Ok(Finished::Stored)
    }

    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError> {
        let mut shelf = lock(&self.shared);
        if shelf.held(ticket) == Some(false) {
            shelf.remove(&ticket.key);
        }
        Ok(())
    }

    async fn prune(&self, limit: usize) -> Result<u64, IdempotencyStoreError> {
        let now = self.clock.now();
        Ok(lock(&self.shared).prune(now, limit))
    }
}

impl Entry {
    fn seen(&self, now: Moment) -> StoredKey {
        StoredKey {
            fingerprint: self.fingerprint,
            run: self.run,
            lease_left: self.leased_until.map(|until| until.since(now)),
            expired: self.ends <= now,
            answer: self.answer.clone(),
        }
    }
}
