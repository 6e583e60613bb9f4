//! Idempotency: runs work once per key, however often it is requested.
//!
//! A caller gives a piece of work a key, and the same key whenever it asks again: because an answer was lost, or a
//! timeout passed. The work is done by the first one who asks; all others get its answer. Over HTTP that is the
//! `Idempotency-Key` header, see `rewheel::axum::IdempotencyLayer` (feature `axum`); here it is for any function.
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
//! # What is promised
//!
//! - Of all who ask under one key at the same time, one runs, in whatever process they ask, as long as all use the same
//!   store.
//! - Whoever runs has a lease on the key, and renews it while the work goes on. **A process that dies in the middle**
//!   leaves the key in flight until the lease runs out. The next one who asks then runs again: the work is done at least
//!   once, and may have been begun twice. With [`AfterCrash::Unknown`] nobody runs again: it is done at most once, and
//!   whoever asks is told that the outcome is unknown.
//! - A run that lost its lease, because its process was stopped or blocked for longer, cannot overwrite what a newer one
//!   answered.
//! - Where the work is a transaction of the same PostgreSQL database, it is done **exactly once**: its answer is stored with
//!   it, by `PostgresStore::finish_in` of `rewheel-stores`.
//! - Work that failed is not remembered: asking again does it again.

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

/// Runs between two prunings, and keys that are pruned each time: several for each that is added, so that those
/// whose time is over do not heap up.
const PRUNE_EVERY: u64 = 64;
const PRUNE_LIMIT: usize = 256;

/// How long a store is asked again that says it is away.
const PATIENCE: Duration = millis(150);

/// The same where work is done: somebody waits for its answer, too.
const FINISH_PATIENCE_MAX: Duration = seconds(10);

/// Does work once for each key. Clones share everything.
#[derive(Clone, Debug)]
pub struct Idempotency {
    store: Arc<dyn IdempotencyStore>,
    lease: Duration,
    keep: Duration,
    wait: Duration,
    after_crash: AfterCrash,
    clock: Clock,
    random: Random,
    flights: Flights,
    runs: Arc<AtomicU64>,
}

/// What whoever asks gets.
#[derive(Debug)]
pub enum Entry {
    /// It is theirs to do.
    Run(Box<Run>),
    /// It was done: this is the answer.
    Done(Vec<u8>),
    /// Another does it, and holds a lease for so long yet.
    InFlight {
        /// What is left of the lease.
        left: Duration,
    },
    /// Somebody began and died; see [`AfterCrash::Unknown`].
    Unknown,
    /// The key stands for something else.
    Reused,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The answer.
    pub bytes: Vec<u8>,
    /// Whether it comes from the store.
    pub replayed: bool,
}

/// There is no answer.
#[derive(Debug, thiserror::Error)]
pub enum IdempotencyError<E> {
    /// The work failed. Asking again does it again.
    #[error("the work failed")]
    Failed(E),
    /// Another does it. Ask again in a moment.
    #[error("another call with this idempotency key is at work")]
    InFlight {
        /// What is left of its lease.
        left: Duration,
    },
    /// A process that did it died; see [`AfterCrash::Unknown`].
    #[error("a call with this idempotency key died in the middle: what it did is unknown")]
    Unknown,
    /// The key stands for something else.
    #[error("this idempotency key was used for something else: take a new one")]
    Reused,
    /// The store does not say who does it; nothing was done.
    #[error(transparent)]
    Store(#[from] IdempotencyStoreError),
}

impl Idempotency {
    /// Remembers keys in a store for a day, with a lease of 30 seconds; whoever asks while another runs is refused.
    pub fn new(store: impl IdempotencyStore + 'static) -> Idempotency {
        Idempotency {
            store: Arc::new(store),
            lease: seconds(30),
            keep: seconds(86_400),
            wait: Duration::ZERO,
            after_crash: AfterCrash::default(),
            clock: Clock::system(),
            random: Random::thread(),
            flights: Flights::default(),
            runs: Arc::default(),
        }
    }

    /// How long a run that falls silent keeps its key. It is renewed every third of it, so it need not be as long as
    /// the work.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Idempotency {
        self.lease = lease.max(millis(10));
        self
    }

    /// How long an answer is kept. Longer than anybody goes on asking.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Idempotency {
        self.keep = keep;
        self
    }

    /// How long whoever asks while another runs waits for its answer. Zero, the default, refuses at once.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Idempotency {
        self.wait = wait;
        self
    }

    /// What becomes of a key whose run died without an answer.
    #[must_use]
    pub fn after_crash(mut self, after_crash: AfterCrash) -> Idempotency {
        self.after_crash = after_crash;
        self
    }

    /// Waits by another clock, in tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Idempotency {
        self.clock = clock.into();
        self
    }

    /// Does the work, unless it was done under this key: then returns what it answered. Work that fails is not
    /// remembered.
    ///
    /// If the answer cannot be stored, it is returned all the same: the work is done. The next one who asks once the lease
    /// has run out would do it again.
    ///
    /// # Errors
    /// Says why there is no answer.
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
        match run.hold(work(run.ticket())).await {
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

    /// Asks to do the work of a key. Where another does it, waits as long as it may.
    ///
    /// Cancel safe but for this: who is dropped just when the work became theirs leaves the key in flight until the lease
    /// runs out.
    ///
    /// # Errors
    /// The store does not say.
    pub async fn begin(
        &self,
        key: IdempotencyKey,
        fingerprint: Fingerprint,
    ) -> Result<Entry, IdempotencyStoreError> {
        self.begin_while(key, fingerprint, || true).await
    }

    /// As [`begin`](Idempotency::begin), but waits for another only as long as somebody wants the answer.
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
            // A millisecond: a store rounds what is left.
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
        // Its answer may be lost: asked again with the same id, it is the same run.
        let begin = Begin { key, fingerprint, run, lease, keep, after_crash };
        let ticket = Ticket { key, run, keep };
        let begun = self.insist(PATIENCE, || self.store.begin(&begin)).await;
        if let Err(IdempotencyStoreError::Unavailable(_)) = begun {
            // It may have begun all the same, and nobody will end it.
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

    /// Forgets keys whose time is over. It does so by itself with every so many runs; a service that is rarely asked may
    /// call it at times.
    ///
    /// # Errors
    /// Says what is wrong with the store.
    pub async fn prune(&self) -> Result<u64, IdempotencyStoreError> {
        self.store.prune(PRUNE_LIMIT).await
    }

    async fn prune_at_times(&self) {
        if self.runs.fetch_add(1, Ordering::Relaxed) % PRUNE_EVERY == PRUNE_EVERY - 1 {
            // It is tried again with those that follow.
            let _ = self.prune().await;
        }
    }

    /// Repeats a verb that may succeed if it is repeated.
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

/// Work that is one's own to do. Dropped without a word, it leaves the key in flight until the lease runs out, as a
/// crash does.
pub struct Run {
    idempotency: Idempotency,
    ticket: Ticket,
    _flight: Flight,
}

impl Run {
    /// Returns the right to answer for the key.
    pub const fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Does the work, and renews the lease meanwhile. A lease that was lost does not stop it: whether its answer counts is
    /// decided when it has one.
    pub async fn hold<F: Future>(&self, work: F) -> F::Output {
        let Idempotency { store, clock, lease, .. } = &self.idempotency;
        let renewing = async {
            let mut nap = *lease / 3;
            loop {
                clock.sleep(nap).await;
                let renewed = store.renew(&self.ticket, *lease);
                // A store that hangs, or fails, is asked once more before the lease is over.
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

    /// Stores the answer. A store that is away is asked again for a while, as long as the key is most likely ours: an answer that is
    /// not stored is work that is done twice.
    ///
    /// # Errors
    /// It is not stored, as far as is known.
    pub async fn finish(&self, answer: &[u8]) -> Result<Finished, IdempotencyStoreError> {
        let Idempotency { store, lease, .. } = &self.idempotency;
        let finish = || store.finish(&self.ticket, answer);
        let patience = (*lease / 2).min(FINISH_PATIENCE_MAX);
        let finished = self.hold(self.idempotency.insist(patience, finish)).await?;
        self.idempotency.prune_at_times().await;
        Ok(finished)
    }

    /// Lets the next one who asks do the work. If the store cannot be told, they do it once the lease has run out.
    pub async fn release(&self) {
        let Idempotency { store, .. } = &self.idempotency;
        let _ = self.idempotency.insist(PATIENCE, || store.release(&self.ticket)).await;
        self.idempotency.prune_at_times().await;
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("ticket", &self.ticket).finish_non_exhaustive()
    }
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
