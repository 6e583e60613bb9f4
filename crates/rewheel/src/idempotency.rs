//! Idempotency: runs work once per key, even if it is requested many times.
//!
//! A caller gives a piece of work a key, and uses the same key when it repeats the request after a lost response or a timeout.
//! The first request runs the work; all others get its stored response. Over HTTP this is the `Idempotency-Key` header, see
//! `rewheel::axum::IdempotencyLayer` (feature `axum`); this module works for any function.
//!
//! ```
//! use rewheel::idempotency::Fingerprint;
//! use rewheel::{Idempotency, IdempotencyKey, MemoryIdempotency};
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! static CHARGES: AtomicU32 = AtomicU32::new(0);
//! async fn charge(cents: u64) -> Result<Vec<u8>, std::io::Error> {
//!     CHARGES.fetch_add(1, Ordering::Relaxed);
//!     Ok(format!("charged {cents}").into_bytes())
//! }
//!
//! let idempotency = Idempotency::new(MemoryIdempotency::new(10_000, 1 << 24));
//! let key = IdempotencyKey::new("acme", "order-17")?;
//! let what = Fingerprint::of(&[b"charge", b"4200"]);
//! let first = idempotency.run(key, what, |_| charge(4200)).await?;
//! let again = idempotency.run(key, what, |_| charge(4200)).await?;
//! assert_eq!((first.replayed, again.replayed, again.bytes), (false, true, first.bytes));
//! assert_eq!(CHARGES.load(Ordering::Relaxed), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - Of all concurrent requests under one key, one runs the work, in any process, as long as all use the same store.
//! - The running process has a lease on the key, and renews it while the work goes on. **If the process dies**, the key stays in
//!   flight until the lease expires. The next request then runs the work again: the work is done at least once, and may have been
//!   started twice. With [`AfterCrash::Unknown`] the work does not run again: it is done at most once, and callers learn
//!   that the outcome is unknown.
//! - A run loses its lease if its process is suspended or blocked for longer than the lease. Such a run cannot overwrite the
//!   response of a newer run.
//! - If the work is a transaction of the same PostgreSQL database, it is done **exactly once**: its response is stored in the
//!   same transaction, by `PostgresStore::finish_in` of `rewheel-stores`.
//! - A failure of the work is not stored: if the request is repeated, the work runs again.

mod key;
mod store;
mod flights;
mod memory;

pub use self::key::{Fingerprint, IdempotencyKey, KeyError};
pub use self::memory::MemoryIdempotency;
pub use self::store::{
    AfterCrash, Begin, Begun, Finished, IdempotencyStore, IdempotencyStoreError, Judged, RunId,
    StoredKey, Ticket,
};

use self::flights::{Flight, Flights};
use crate::clock::Clock;
use crate::duration::{millis, seconds};
use crate::random::Random;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

/// Number of runs between two prunes, and number of keys pruned each time: several for each added key, so that expired keys do
/// not accumulate.
const PRUNE_EVERY: u64 = 64;
const PRUNE_LIMIT: usize = 256;

/// How long to repeat a request while the store is unavailable.
const PATIENCE: Duration = millis(150);

/// The longest time to store the response of completed work, or to release a key: a caller waits for it, also if the store hangs.
const FINISH_PATIENCE_MAX: Duration = seconds(10);

/// The longest time that a caller waits to learn whether it may begin, if the store hangs.
const BEGIN_PATIENCE_MAX: Duration = seconds(10);

/// The longest time that a caller waits for a prune.
const PRUNE_PATIENCE: Duration = millis(500);

/// Runs work once per key. Clones share everything.
#[derive(Clone, Debug)]
pub struct Idempotency {
    store: Arc<dyn IdempotencyStore>,
    lease: Duration,
    keep: Duration,
    wait: Duration,
    work_max: Duration,
    after_crash: AfterCrash,
    clock: Clock,
    random: Random,
    flights: Flights,
    runs: Arc<AtomicU64>,
}

/// The result of a request for a key.
#[derive(Debug)]
pub enum Entry {
    /// The caller must run the work.
    Run(Box<Run>),
    /// The work is done. Contains the response.
    Done(Vec<u8>),
    /// Another caller runs the work, and holds the lease.
    InFlight {
        /// Time left on the lease.
        left: Duration,
    },
    /// A caller began the work and died; see [`AfterCrash::Unknown`].
    Unknown,
    /// The key was used for a different request.
    Reused,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The response.
    pub bytes: Vec<u8>,
    /// Whether it was read from the store.
    pub replayed: bool,
}

/// Error: there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdempotencyError<E> {
    /// The work failed. Repeating the request runs it again.
    #[error("the work failed: {0}")]
    Failed(E),
    /// Another caller runs the work. Repeat the request later.
    #[error("another call with this idempotency key is still running: repeat the request later")]
    InFlight {
        /// Time left on its lease.
        left: Duration,
    },
    /// A process died while it ran the work; see [`AfterCrash::Unknown`].
    #[error(
        "a call with this idempotency key was interrupted before it finished: check what it did; to repeat it, use a new key"
    )]
    Unknown,
    /// The work took longer than [`Idempotency::work_max`] and was dropped. It is not known what it did.
    #[error(
        "the work took longer than its limit and was stopped: check what it did before you repeat the request"
    )]
    TimedOut,
    /// The key was used for a different request.
    #[error("this idempotency key was used for a different request: use a new key")]
    Reused,
    /// The store is unavailable or failed; the work was not run.
    #[error(transparent)]
    Store(#[from] IdempotencyStoreError),
}

impl Idempotency {
    /// Keeps keys in a store for one day, with a lease of 30 seconds; refuses concurrent requests for a running key, and stops
    /// work after an hour.
    pub fn new(store: impl IdempotencyStore + 'static) -> Idempotency {
        Idempotency {
            store: Arc::new(store),
            lease: seconds(30),
            keep: seconds(86_400),
            wait: Duration::ZERO,
            work_max: seconds(3_600),
            after_crash: AfterCrash::default(),
            clock: Clock::system(),
            random: Random::thread(),
            flights: Flights::default(),
            runs: Arc::default(),
        }
    }

    /// Sets how long a run that stops renewing keeps its key. The lease is renewed three times in this time, so the lease may be
    /// shorter than the work.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Idempotency {
        self.lease = lease.max(millis(10));
        self
    }

    /// Sets the retention of a response. Choose a time that is longer than the time in which callers repeat a request.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Idempotency {
        self.keep = keep;
        self
    }

    /// Sets how long a concurrent request waits for the response of the running one. Zero, the default, refuses at once.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Idempotency {
        self.wait = wait;
        self
    }

    /// Sets how long the work may run; the default is an hour. Work that takes longer is dropped, and its key is treated as after a
    /// crash (see [`after_crash`](Idempotency::after_crash)), because it is not known what the work did. Without this limit, work
    /// that hangs would keep its key for ever, also after its caller has given up.
    #[must_use]
    pub fn work_max(mut self, work_max: Duration) -> Idempotency {
        self.work_max = work_max;
        self
    }

    /// Sets what happens to a key whose run died without a response.
    #[must_use]
    pub fn after_crash(mut self, after_crash: AfterCrash) -> Idempotency {
        self.after_crash = after_crash;
        self
    }

    /// Uses another clock for waiting, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Idempotency {
        self.clock = clock.into();
        self
    }

    /// Runs the work, or returns the stored response if the work was already done under this key. Failed work is not stored.
    ///
    /// If the response cannot be stored, it is returned anyway, since the work is done. The next request after the lease expired
    /// would run the work again.
    ///
    /// # Errors
    /// Fails with the reason why there is no response.
    pub async fn run<F, Fut, E>(
        &self,
        key: IdempotencyKey,
        fingerprint: Fingerprint,
        work: F,
    ) -> Result<Answered, IdempotencyError<E>>
    where
        F: FnOnce(Ticket) -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
    {
        let run = match self.begin(key, fingerprint).await? {
            Entry::Run(run) => run,
            Entry::Done(bytes) => return Ok(Answered { bytes, replayed: true }),
            Entry::InFlight { left } => return Err(IdempotencyError::InFlight { left }),
            Entry::Unknown => return Err(IdempotencyError::Unknown),
            Entry::Reused => return Err(IdempotencyError::Reused),
        };
        let Some(worked) = run.hold_for_work_max(work(run.ticket())).await else {
            return Err(IdempotencyError::TimedOut);
        };
        match worked {
            Ok(bytes) => match run.finish(&bytes).await {
                Ok(Finished::Lost) => Err(IdempotencyError::InFlight { left: Duration::ZERO }),
                Ok(Finished::Stored | Finished::Already) | Err(_) => {
                    Ok(Answered { bytes, replayed: false })
                }
            },
            Err(error) => {
                run.release().await;
                Err(IdempotencyError::Failed(error))
            }
        }
    }

    /// Requests the right to run the work of a key. While another caller runs it, waits as long as configured.
    ///
    /// Cancel safe with one exception: a caller that is dropped exactly when it receives the key leaves the key in flight until
    /// the lease expires.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub async fn begin(
        &self,
        key: IdempotencyKey,
        fingerprint: Fingerprint,
    ) -> Result<Entry, IdempotencyStoreError> {
        self.begin_while(key, fingerprint, || true).await
    }

    /// Like [`begin`](Idempotency::begin), but waits for another run only while the caller still wants the response.
    pub(crate) async fn begin_while(
        &self,
        key: IdempotencyKey,
        fingerprint: Fingerprint,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Entry, IdempotencyStoreError> {
        let until = self.clock.now().plus(self.wait);
        let mut pause = millis(10);
        loop {
            let left = match self.ask(key, fingerprint).await? {
                Entry::InFlight { left } => left,
                entry @ (Entry::Run(_) | Entry::Done(_) | Entry::Unknown | Entry::Reused) => {
                    return Ok(entry);
                }
            };
            let rest = until.since(self.clock.now());
            if rest.is_zero() {
                return Ok(Entry::InFlight { left });
            }
            // At least a millisecond, because a store rounds the time left.
            let nap = left.min(rest).max(millis(1));
            match self.flights.find(&key) {
                Some(landed) => {
                    unless(self.clock.sleep(nap), landed.cancelled()).await;
                }
                None => {
                    self.clock.sleep(nap.min(pause)).await;
                    pause = (pause * 2).min(millis(500));
                }
            }
            if !is_wanted() {
                return Ok(Entry::InFlight { left });
            }
        }
    }

    async fn ask(
        &self,
        key: IdempotencyKey,
        fingerprint: Fingerprint,
    ) -> Result<Entry, IdempotencyStoreError> {
        let run = RunId::new(&self.random);
        let (lease, keep, after_crash) = (self.lease, self.keep, self.after_crash);
        // The response may be lost: a repeated request with the same id is the same run.
        let begin = Begin { key, fingerprint, run, lease, keep, after_crash };
        let ticket = Ticket { key, run, keep };
        // A store that hangs must not hold the request, whose caller may have no time limit of its own.
        let begun = self.insist(PATIENCE, || async {
            let begun =
                unless(self.clock.sleep(BEGIN_PATIENCE_MAX), self.store.begin(&begin)).await;
            begun.unwrap_or_else(|| Err(no_answer()))
        });
        let begun = begun.await;
        if let Err(IdempotencyStoreError::Unavailable(_)) = begun {
            // It may have begun anyway, and no run would end it.
            unless(self.clock.sleep(PATIENCE), self.store.release(&ticket)).await;
        }
        Ok(match begun? {
            Begun::Run => Entry::Run(Box::new(Run {
                idempotency: self.clone(),
                ticket,
                _flight: self.flights.depart(key, run),
            })),
            Begun::InFlight { left } => Entry::InFlight { left },
            Begun::Done(answer) => Entry::Done(answer),
            Begun::Unknown => Entry::Unknown,
            Begun::Reused => Entry::Reused,
        })
    }

    /// Deletes expired keys. This also happens automatically every 64 runs; a service with little traffic may call it from time
    /// to time.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub async fn prune(&self) -> Result<u64, IdempotencyStoreError> {
        self.store.prune(PRUNE_LIMIT).await
    }

    async fn prune_at_times(&self) {
        if self.runs.fetch_add(1, Ordering::Relaxed) % PRUNE_EVERY == PRUNE_EVERY - 1 {
            // A later prune repeats it.
            unless(self.clock.sleep(PRUNE_PATIENCE), self.prune()).await;
        }
    }

    /// Repeats a store method while repeating may help.
    async fn insist<T, F>(
        &self,
        patience: Duration,
        mut verb: impl FnMut() -> F,
    ) -> Result<T, IdempotencyStoreError>
    where
        F: Future<Output = Result<T, IdempotencyStoreError>>,
    {
        let until = self.clock.now().plus(patience);
        let mut pause = millis(50);
        loop {
            let answer = verb().await;
            let rest = until.since(self.clock.now());
            if rest.is_zero() || !matches!(answer, Err(IdempotencyStoreError::Unavailable(_))) {
                return answer;
            }
            self.clock.sleep(pause.min(rest)).await;
            pause = (pause * 2).min(seconds(1));
        }
    }
}

/// Work that this caller must run. If dropped without a result, the key stays in flight until the lease expires, as after a
/// crash.
pub struct Run {
    idempotency: Idempotency,
    ticket: Ticket,
    _flight: Flight,
}

impl Run {
    /// Returns the ticket to respond for the key.
    pub const fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Runs the work, and renews the lease while the work runs. If the lease is lost, the work continues; when it finishes,
    /// the store decides whether to accept its response.
    pub async fn hold<F: Future>(&self, work: F) -> F::Output {
        let Idempotency { store, clock, lease, .. } = &self.idempotency;
        let renewing = async {
            let mut nap = *lease / 3;
            loop {
                clock.sleep(nap).await;
                let renewed = store.renew(&self.ticket, *lease);
                // If the store hangs or fails, it is asked once more before the lease expires.
                nap = match unless(clock.sleep(*lease / 4), renewed).await {
                    Some(Ok(true)) => *lease / 3,
                    Some(Ok(false)) => return,
                    Some(Err(_)) | None => *lease / 12,
                };
            }
        };
        let (mut work, mut renewing) = (pin!(work), pin!(renewing));
        let mut renews = true;
        poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            if polled.is_pending() && renews && renewing.as_mut().poll(cx).is_ready() {
                renews = false;
            }
            polled
        })
        .await
    }

    /// Like [`hold`](Run::hold), but drops the work after [`Idempotency::work_max`] and returns `None`. Do not release the key
    /// then: it is not known what the work did.
    pub async fn hold_for_work_max<F: Future>(&self, work: F) -> Option<F::Output> {
        let Idempotency { clock, work_max, .. } = &self.idempotency;
        unless(clock.sleep(*work_max), self.hold(work)).await
    }

    /// Stores the response. While the store is unavailable, it tries again, as long as this run most likely still has the key. If
    /// the response is not stored, a later request runs the work again.
    ///
    /// # Errors
    /// Fails if the response was not stored, or if this is unknown.
    pub async fn finish(&self, answer: &[u8]) -> Result<Finished, IdempotencyStoreError> {
        let Idempotency { store, lease, .. } = &self.idempotency;
        let finish = || store.finish(&self.ticket, answer);
        let patience = (*lease / 2).min(FINISH_PATIENCE_MAX);
        // A store that hangs must not withhold a response that exists.
        let clock = &self.idempotency.clock;
        let insisting = self.hold(self.idempotency.insist(patience, finish));
        let finished = unless(clock.sleep(FINISH_PATIENCE_MAX), insisting).await;
        let finished = finished.unwrap_or_else(|| Err(no_answer()))?;
        self.idempotency.prune_at_times().await;
        Ok(finished)
    }

    /// Releases the key, so that the next request runs the work. If the store is unavailable, the key is released when the lease expires.
    pub async fn release(&self) {
        let Idempotency { store, .. } = &self.idempotency;
        let releasing = self.idempotency.insist(PATIENCE, || store.release(&self.ticket));
        unless(self.idempotency.clock.sleep(FINISH_PATIENCE_MAX), releasing).await;
        self.idempotency.prune_at_times().await;
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

fn no_answer() -> IdempotencyStoreError {
    IdempotencyStoreError::Unavailable("the store did not answer in time".into())
}

/// Waits for work, unless something else comes first.
async fn unless<T>(other: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let (mut other, mut work) = (pin!(other), pin!(work));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => other.as_mut().poll(cx).map(|()| None),
    })
    .await
}
