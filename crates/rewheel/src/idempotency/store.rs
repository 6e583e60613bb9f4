//! The interface that every idempotency store implements.

use super::key::{Fingerprint, IdempotencyKey};
use crate::random::Random;
use async_trait::async_trait;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Stores requests by key, the run in progress, and the response.
///
/// All times are measured by the clock of the store, so the arguments of the methods are durations. Every method may be
/// repeated when its response was lost. A store is correct if it passes `idempotency_conformance!` of `rewheel-testkit`.
#[async_trait]
pub trait IdempotencyStore: Send + Sync + fmt::Debug {
    /// Starts a run for a key, or returns why it did not start. Of all concurrent requests one gets [`Begun::Run`].
    /// [`StoredKey::judge`] decides by the stored data.
    async fn begin(&self, begin: &Begin) -> Result<Begun, IdempotencyStoreError>;

    /// Extends the lease of a run from now on. Returns whether the run still has the key.
    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError>;

    /// Stores the response for the retention of the ticket, if the run still has the key. An expired lease does not matter if no
    /// other run has taken the key.
    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError>;

    /// Deletes the key if the run has it and has not finished: the next request runs.
    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError>;

    /// Deletes expired keys, at most `limit`. Returns the number deleted.
    async fn prune(&self, limit: usize) -> Result<u64, IdempotencyStoreError>;
}

#[async_trait]
impl<T: IdempotencyStore + ?Sized> IdempotencyStore for Arc<T> {
    async fn begin(&self, begin: &Begin) -> Result<Begun, IdempotencyStoreError> {
        (**self).begin(begin).await
    }

    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError> {
        (**self).renew(ticket, lease).await
    }

    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError> {
        (**self).finish(ticket, answer).await
    }

    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError> {
        (**self).release(ticket).await
    }

    async fn prune(&self, limit: usize) -> Result<u64, IdempotencyStoreError> {
        (**self).prune(limit).await
    }
}

/// A new id for each run. Every write of a run contains this id, so that a run that lost its key cannot overwrite the
/// response of another run. The id is not a counter, because a counter would start again if the key is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunId([u8; 16]);

impl RunId {
    /// Creates a unique id.
    pub fn new(random: &Random) -> RunId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random.next().to_be_bytes());
        bytes[8..].copy_from_slice(&random.next().to_be_bytes());
        RunId(bytes)
    }

    /// Creates an id from stored bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> RunId {
        RunId(bytes)
    }

    /// Returns the bytes to store.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// The right to respond for a key. A handler finds it in the extensions of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The key.
    pub key: IdempotencyKey,
    /// The run.
    pub run: RunId,
    /// Retention of the response.
    pub keep: Duration,
}

/// What happens to a key whose run died without a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterCrash {
    /// The next request runs again: the work is done at least once, and may have been started twice.
    #[default]
    RunAgain,
    /// No request runs again until the key expires: the work is done at most once, and callers learn that the outcome is unknown.
    Unknown,
}

/// A request to start a run.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// The key.
    pub key: IdempotencyKey,
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// The id of the run.
    pub run: RunId,
    /// How long the run has the key if it does not renew its lease.
    pub lease: Duration,
    /// Retention of the key if the run dies.
    pub keep: Duration,
    /// What to do if an earlier run died.
    pub after_crash: AfterCrash,
}

/// Result of a request to start a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The caller has the key and must run the work.
    Run,
    /// Another run has the lease.
    InFlight {
        /// Time left on the lease.
        left: Duration,
    },
    /// The work is done. Contains the response.
    Done(Vec<u8>),
    /// A run died; see [`AfterCrash::Unknown`].
    Unknown,
    /// The key was used for a different request.
    Reused,
}

/// Result of storing a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Stored.
    Stored,
    /// This run has already stored a response, which stays.
    Already,
    /// Another run has the key: the response is not stored.
    Lost,
}

/// Error of an idempotency store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdempotencyStoreError {
    /// Temporary: wait and repeat.
    #[error(
        "the idempotency store is unavailable ({0}): repeat the request later with the same key"
    )]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// The store is full until keys expire.
    #[error("the idempotency store is full: repeat the request later with the same key")]
    Full,
    /// The store needs operator action.
    #[error("the idempotency store failed and needs operator action: {0}")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

/// The stored data of a key, by the store's clock.
#[derive(Clone, Debug)]
pub struct StoredKey {
    /// Fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// The latest run.
    pub run: RunId,
    /// Time left on its lease, zero if it expired; `None` once there is a response.
    pub lease_left: Option<Duration>,
    /// Whether the retention of the key is over.
    pub expired: bool,
    /// The response, if there is one.
    pub answer: Vec<u8>,
}

/// The decision about a request for a stored key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Return this result.
    Answer(Begun),
    /// The request takes the key, if the stored data has not changed since it was read.
    Take,
}

impl StoredKey {
    /// Decides the result of a request for a stored key, in the same way for every store.
    ///
    /// ```
    /// use rewheel::idempotency::{AfterCrash, Begin, Begun, Fingerprint, Judged, RunId, StoredKey};
    /// use rewheel::{IdempotencyKey, Random, seconds};
    ///
    /// let begin = Begin {
    ///     key: IdempotencyKey::new("acme", "order-17")?,
    ///     fingerprint: Fingerprint::of(&[b"charge 4200"]),
    ///     run: RunId::new(&Random::seeded(1)),
    ///     lease: seconds(30),
    ///     keep: seconds(3_600),
    ///     after_crash: AfterCrash::RunAgain,
    /// };
    /// let known = StoredKey {
    ///     fingerprint: begin.fingerprint,
    ///     run: RunId::new(&Random::seeded(2)),
    ///     lease_left: Some(seconds(5)),
    ///     expired: false,
    ///     answer: Vec::new(),
    /// };
    /// assert_eq!(known.judge(&begin), Judged::Answer(Begun::InFlight { left: seconds(5) }));
    /// # Ok::<(), rewheel::idempotency::KeyError>(())
    /// ```
    pub fn judge(self, begin: &Begin) -> Judged {
        let runs = self.lease_left.is_some_and(|left| !left.is_zero());
        if self.expired && !runs {
            return Judged::Take;
        }
        if self.fingerprint != begin.fingerprint {
            return Judged::Answer(Begun::Reused);
        }
        match self.lease_left {
            None => Judged::Answer(Begun::Done(self.answer)),
            // The response was lost, so it is sent again.
            Some(_) if self.run == begin.run && runs => Judged::Answer(Begun::Run),
            Some(left) if runs => Judged::Answer(Begun::InFlight { left }),
            Some(_) if self.run == begin.run => Judged::Take,
            Some(_) => match begin.after_crash {
                AfterCrash::RunAgain => Judged::Take,
                AfterCrash::Unknown => Judged::Answer(Begun::Unknown),
            },
        }
    }
}
