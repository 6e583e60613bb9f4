//! The cache of last good values.

use super::Freshness;
use super::builder::LastGoodBuilder;
use super::flight::{Flights, Joined, Lead};
use super::limits::Limits;
use crate::clock::Moment;
use crate::duration::text;
use crate::error::{Error, GiveUpReason};
use crate::observer::Event;
use crate::retry::block_on;
use quick_cache::sync::Cache;
use std::borrow::Borrow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// Caches the results of calls, and returns the last good one if a later call fails. Clones share the values.
///
/// - A value is returned without a call until its time to live is over.
/// - If many callers miss the same key at the same time, one of them makes the call, and the others wait for its result. They
///   also share its error. If that caller is cancelled or panics, another one makes the call; also if the call was given up
///   because of that caller's own limits: a deadline of its [`CallContext`](crate::CallContext), or a retry around it.
/// - With [`stale_if_error`](LastGoodBuilder::stale_if_error), an old value is returned if a call fails. An error of the
///   category [`Rejected`](crate::Category::Rejected) is an answer of the called service, and is returned instead.
/// - The number of keys is limited.
///
/// ```
/// use rewheel::{Freshness, LastGood, minutes, seconds};
/// # use std::io;
/// # async fn fetch_rate(currency: &str) -> io::Result<f64> { Ok(1.1) }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rates = LastGood::ttl(seconds(60)).stale_if_error(minutes(60)).keys_max(200).build();
/// let first = rates.get_or_call("EUR", || fetch_rate("EUR")).await?;
/// let again = rates.get_or_call("EUR", || fetch_rate("EUR")).await?;
/// assert_eq!((first.freshness(), again.freshness()), (Freshness::Fetched, Freshness::Cached));
/// assert_eq!(*again, 1.1);
/// # let _: LastGood<String, f64, io::Error> = rates;
/// # Ok(())
/// # }
/// ```
///
/// All callers get the same value and the same error, hence an [`Arc`] of each.
pub struct LastGood<K, V, E> {
    shared: Arc<Shared<K, V, E>>,
}

struct Shared<K, V, E> {
    values: Cache<K, Stored<V>>,
    flights: Flights<K, Landed<V, E>>,
    settings: LastGoodBuilder,
}

struct Stored<V> {
    value: Arc<V>,
    at: Moment,
}

type Landed<V, E> = Result<Stored<V>, Failed<E>>;

/// A failure that callers share.
struct Failed<E> {
    error: Error<Arc<E>>,
    /// The limits of the caller that made the call, which ended it. A caller with wider ones may succeed.
    limits: Limits,
}

/// A value of a [`LastGood`], which dereferences to it.
#[derive(Debug)]
pub struct Good<V> {
    value: Arc<V>,
    freshness: Freshness,
    age: Duration,
    at: Moment,
}

impl<V> Good<V> {
    /// Returns where the value is from.
    pub const fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// Returns the time since the value was fetched.
    pub const fn age(&self) -> Duration {
        self.age
    }

    /// Returns the value, which other callers may have as well.
    pub fn into_arc(self) -> Arc<V> {
        self.value
    }
}

impl<K: Hash + Eq + Clone, V, E> LastGood<K, V, E> {
    pub(super) fn new(settings: LastGoodBuilder) -> LastGood<K, V, E> {
        let values = Cache::new(settings.keys_max);
        let flights = Flights::new(settings.clock.clone(), settings.takeover);
        LastGood { shared: Arc::new(Shared { values, flights, settings }) }
    }

    /// Returns the value of a key, if its time to live is not over.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<Good<V>>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let stored = self.shared.values.get(key)?;
        let age = self.shared.settings.clock.now().since(stored.at);
        (age < self.shared.settings.ttl).then(|| self.served(stored, Freshness::Cached, age))
    }

    /// Returns the value of a key, or makes the call and stores its value.
    ///
    /// Cancel safe: if the caller that fetches is dropped, another one that waits makes its own call.
    ///
    /// # Errors
    /// Fails with the error of the call if there is no value that may be returned instead.
    pub async fn get_or_call<Q, F, Fut>(
        &self,
        key: &Q,
        operation: F,
    ) -> Result<Good<V>, Error<Arc<E>>>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<V, E>>,
        E: crate::Classify,
    {
        self.get_or_run(key, async { operation().await.map_err(Error::once) }).await
    }

    /// As [`get_or_call`](LastGood::get_or_call), for a call that has policies of its own: a call of a
    /// [`Pipeline`](crate::Pipeline), with or without a [hedge](crate::Call::hedge). It starts only if it is needed.
    ///
    /// Every `Ok` value is stored. If the call has a judge that calls some of them failures, use
    /// [`Call::last_good`](crate::Call::last_good) instead.
    ///
    /// ```
    /// use rewheel::{Hedge, LastGood, Pipeline, Retry, SafeToRepeat, millis, seconds};
    /// # use std::io;
    /// # async fn fetch_page(number: u32) -> io::Result<String> { Ok(number.to_string()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let fetch = Pipeline::new().timeout(seconds(2)).retry(Retry::EXTERNAL_API);
    /// let hedge = Hedge::after(millis(50)).build();
    /// let pages = LastGood::ttl(seconds(60)).build::<u32, String, io::Error>();
    ///
    /// let call = fetch.run(|_| fetch_page(7)).hedge(&hedge, SafeToRepeat);
    /// let page = pages.get_or_run(&7, call).await?;
    /// # assert_eq!(*page, "7");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails with the error of the call if there is no value that may be returned instead.
    pub async fn get_or_run<Q, C>(&self, key: &Q, call: C) -> Result<Good<V>, Error<Arc<E>>>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
        C: IntoFuture<Output = Result<V, Error<E>>>,
    {
        if let Some(good) = self.get(key) {
            return Ok(good);
        }
        loop {
            match self.shared.flights.join(key).await {
                Joined::Landed(Err(failed)) if failed.limits.are_tighter_than_own() => {}
                Joined::Landed(landed) => return self.shared_result(key, landed),
                Joined::Leads(lead) => {
                    return match self.get(key) {
                        Some(good) => Ok(self.found(lead, good)),
                        None => self.finish(lead, call.await),
                    };
                }
            }
        }
    }

    /// As [`get_or_call`](LastGood::get_or_call), for an operation that blocks. Callers that wait block their threads.
    ///
    /// ```
    /// use rewheel::{LastGood, seconds};
    ///
    /// let files = LastGood::ttl(seconds(60)).build();
    /// let manifest = files.get_or_call_blocking("Cargo.toml", || std::fs::read_to_string("Cargo.toml"))?;
    /// assert!(manifest.contains("rewheel"));
    /// # let _: LastGood<String, String, std::io::Error> = files;
    /// # Ok::<_, rewheel::Error<std::sync::Arc<std::io::Error>>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the error of the call if there is no value that may be returned instead.
    pub fn get_or_call_blocking<Q>(
        &self,
        key: &Q,
        operation: impl FnOnce() -> Result<V, E>,
    ) -> Result<Good<V>, Error<Arc<E>>>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
        E: crate::Classify,
    {
        self.get_or_run_blocking(key, || operation().map_err(Error::once))
    }

    pub(super) fn get_or_run_blocking<Q>(
        &self,
        key: &Q,
        call: impl FnOnce() -> Result<V, Error<E>>,
    ) -> Result<Good<V>, Error<Arc<E>>>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        if let Some(good) = self.get(key) {
            return Ok(good);
        }
        loop {
            match block_on(self.shared.flights.join(key)) {
                Joined::Landed(Err(failed)) if failed.limits.are_tighter_than_own() => {}
                Joined::Landed(landed) => return self.shared_result(key, landed),
                Joined::Leads(lead) => {
                    return match self.get(key) {
                        Some(good) => Ok(self.found(lead, good)),
                        None => self.finish(lead, call()),
                    };
                }
            }
        }
    }

    /// Stores a value as if a call had returned it.
    pub fn insert(&self, key: K, value: V) {
        let at = self.shared.settings.clock.now();
        self.shared.values.insert(key, Stored { value: Arc::new(value), at });
    }

    /// Forgets the value of a key, also as a stale one. The value of a fetch that is under way is not kept.
    pub fn invalidate<Q>(&self, key: &Q)
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        self.shared.flights.detach(key);
        self.shared.values.remove(key);
    }

    /// Returns how many values it has, old ones included.
    pub fn len(&self) -> usize {
        self.shared.values.len()
    }

    /// Returns whether it has no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many fetches are under way.
    pub fn fetches(&self) -> usize {
        self.shared.flights.len()
    }

    /// Another caller fetched the value between the first look and the start of this flight.
    fn found(&self, lead: Lead<'_, K, Landed<V, E>>, good: Good<V>) -> Good<V> {
        lead.land(Ok(Stored { value: Arc::clone(&good.value), at: good.at }));
        good
    }

    /// Ends the flight that this caller leads.
    fn finish(
        &self,
        lead: Lead<'_, K, Landed<V, E>>,
        result: Result<V, Error<E>>,
    ) -> Result<Good<V>, Error<Arc<E>>> {
        match result {
            Ok(value) => {
                let at = self.shared.settings.clock.now();
                let stored = Stored { value: Arc::new(value), at };
                let key = lead.key().clone();
                // Stored first: a caller that finds no flight finds the value.
                if lead.is_current() {
                    self.shared.values.insert(key.clone(), stored.clone());
                }
                if !lead.land(Ok(stored.clone())) {
                    self.drop_outdated(&key, &stored);
                }
                Ok(self.served(stored, Freshness::Fetched, Duration::ZERO))
            }
            Err(error) => {
                let error = error.map(Arc::new);
                let key = lead.key().clone();
                if error.reason() == GiveUpReason::Cancelled {
                    // Only this caller cancelled: the lead passes to another one.
                    drop(lead);
                } else {
                    let limits = Limits::that_ended(&error);
                    lead.crash(Err(Failed { error: error.clone(), limits }));
                }
                self.stale_or(&key, error)
            }
        }
    }

    /// Removes the value of a fetch during which the key was invalidated, or which a later one has overtaken.
    fn drop_outdated(&self, key: &K, stored: &Stored<V>) {
        let is_this = |now: &Stored<V>| Arc::ptr_eq(&now.value, &stored.value);
        self.shared.values.remove_if(key, is_this);
    }

    fn shared_result<Q>(&self, key: &Q, landed: Landed<V, E>) -> Result<Good<V>, Error<Arc<E>>>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        match landed {
            Ok(stored) => {
                let age = self.shared.settings.clock.now().since(stored.at);
                Ok(self.served(stored, Freshness::Shared, age))
            }
            Err(failed) => self.stale_or(key, failed.error),
        }
    }

    /// Returns the old value instead of an error, if it may be used.
    fn stale_or<Q>(&self, key: &Q, error: Error<Arc<E>>) -> Result<Good<V>, Error<Arc<E>>>
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let LastGoodBuilder { ttl, stale_max, clock, .. } = &self.shared.settings;
        if error.is_conclusive() {
            return Err(error);
        }
        let Some(stored) = self.shared.values.get(key) else { return Err(error) };
        let age = clock.now().since(stored.at);
        if age < *ttl {
            return Ok(self.served(stored, Freshness::Cached, age));
        }
        if age >= ttl.saturating_add(*stale_max) {
            return Err(error);
        }
        Ok(self.served(stored, Freshness::Stale, age))
    }

    #[inline]
    fn served(&self, stored: Stored<V>, freshness: Freshness, age: Duration) -> Good<V> {
        let LastGoodBuilder { name, observer, .. } = &self.shared.settings;
        if let Some(observer) = observer {
            observer.observe(&Event::LastGoodServed { name, freshness, age });
        }
        Good { value: stored.value, freshness, age, at: stored.at }
    }
}

impl<V> Deref for Good<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

// Not derived: none of these needs anything of `K`, `V` or `E`.

impl<V> Clone for Good<V> {
    fn clone(&self) -> Good<V> {
        let Good { freshness, age, at, .. } = *self;
        Good { value: Arc::clone(&self.value), freshness, age, at }
    }
}

impl<V> Clone for Stored<V> {
    fn clone(&self) -> Stored<V> {
        Stored { value: Arc::clone(&self.value), at: self.at }
    }
}

impl<E> Clone for Failed<E> {
    fn clone(&self) -> Failed<E> {
        Failed { error: self.error.clone(), limits: self.limits }
    }
}

impl<K, V, E> Clone for LastGood<K, V, E> {
    fn clone(&self) -> LastGood<K, V, E> {
        LastGood { shared: Arc::clone(&self.shared) }
    }
}

impl<K, V, E> fmt::Debug for LastGood<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastGood").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl<K, V, E> fmt::Display for LastGood<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LastGoodBuilder { ttl, stale_max, keys_max, name, .. } = &self.shared.settings;
        f.write_str("last good value")?;
        if !name.is_empty() {
            write!(f, " {name:?}")?;
        }
        write!(f, ": fresh for {}", text(*ttl))?;
        if !stale_max.is_zero() {
            write!(f, ", after a failure for {} more", text(*stale_max))?;
        }
        write!(f, ", at most {keys_max} keys")
    }
}

impl crate::Explanation {
    /// Describes a call under this pipeline whose results are cached, as [`Call::last_good`](crate::Call::last_good) does.
    ///
    /// ```
    /// use rewheel::{LastGood, Pipeline, seconds};
    ///
    /// let rates = LastGood::ttl(seconds(60)).build::<String, f64, std::io::Error>();
    /// let explained = Pipeline::new().timeout(seconds(2)).explain().with_last_good(&rates);
    /// assert!(explained.to_string().starts_with("last good value: fresh for 1m, at most 1000 keys\n"));
    /// ```
    #[must_use]
    pub fn with_last_good<K, V, E>(mut self, cache: &LastGood<K, V, E>) -> crate::Explanation {
        self.steps.insert(0, cache.to_string());
        // A caller may wait for the call of another one that fails, or take over and make its own.
        let takeover = cache.shared.settings.takeover;
        self.time_max = self.time_max.map(|time| time.saturating_add(time.min(takeover)));
        self
    }
}
