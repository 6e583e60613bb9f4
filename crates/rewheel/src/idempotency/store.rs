//! The interface that every idempotency store implements.

use super::key::{Fingerprint, IdempotencyKey};
use crate::random::Random;
use async_trait::async_trait;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Remembers what was asked for under a key, who is at work on it, and what the answer was.
///
/// A store has a clock of its own, the only one that everybody who uses it agrees on: verbs take durations. Every
/// verb may be repeated when its answer was lost. A store is whatever passes `idempotency_conformance!` of
/// `rewheel-testkit`.
#[async_trait]
pub trait IdempotencyStore: Send + Sync + fmt::Debug {
    /// Begins a run under a key, or says why not. Of all that ask at the same time one gets
    /// [`Begun::Run`]. What follows from what is stored is for [`StoredKey::judge`] to say.
    async fn begin(&self, begin: &Begin) -> Result<Begun, IdempotencyStoreError>;

    /// Prolongs the lease of a run, from now on. Answers whether the run still has the key.
    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError>;

    /// Stores the answer, to be kept as long as the ticket says from now on, provided that the run still has the
    /// key: a lease that ran out does not matter while nobody else took the key.
    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError>;

    /// Forgets the key, provided that the run has it and has not finished: the next one who asks runs.
    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError>;

    /// Deletes keys whose time is over, at most `limit`. Returns how many.
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

/// A fresh id for each run. Every write of a run names it, so that one that lost its key cannot overwrite the answer
/// of another. Not a counter: a key may be forgotten meanwhile, and would count from the beginning again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunId([u8; 16]);

impl RunId {
    /// Makes an id that nobody else has.
    pub fn new(random: &Random) -> RunId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random.next().to_be_bytes());
        bytes[8..].copy_from_slice(&random.next().to_be_bytes());
        RunId(bytes)
    }

    /// Takes what a store kept.
    pub const fn from_bytes(bytes: [u8; 16]) -> RunId {
        RunId(bytes)
    }

    /// Returns what a store keeps of it.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// The right to answer for a key. A handler finds it among the extensions of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// What was asked for.
    pub key: IdempotencyKey,
    /// Who is at work on it.
    pub run: RunId,
    /// How long the answer is to be kept.
    pub keep: Duration,
}

/// What becomes of a key whose run died without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterCrash {
    /// The next one who asks runs again: the work is done at least once, and may have been begun twice.
    #[default]
    RunAgain,
    /// Nobody runs again, until the key is forgotten: the work is done at most once, and whoever asks is told that
    /// the outcome is unknown.
    Unknown,
}

/// Somebody asks to run.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// Under this key.
    pub key: IdempotencyKey,
    /// For this.
    pub fingerprint: Fingerprint,
    /// With this id.
    pub run: RunId,
    /// How long the key is theirs unless they renew it.
    pub lease: Duration,
    /// How long the key is remembered if they die.
    pub keep: Duration,
    /// What is done about a run that died before.
    pub after_crash: AfterCrash,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The key is theirs: they run.
    Run,
    /// Another runs, whose lease is good for so long yet.
    InFlight {
        /// What is left of the lease.
        left: Duration,
    },
    /// It was done: this is the answer.
    Done(Vec<u8>),
    /// Somebody ran and died; see [`AfterCrash::Unknown`].
    Unknown,
    /// The key stands for something else.
    Reused,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It is stored.
    Stored,
    /// This run has stored an answer before, which stays.
    Already,
    /// Another has the key: the answer is not stored.
    Lost,
}

/// A store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum IdempotencyStoreError {
    /// Waiting may help.
    #[error("the store of idempotency keys is unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// There is no room until keys are forgotten.
    #[error("the store of idempotency keys is full")]
    Full,
    /// A person must look at it.
    #[error("the store of idempotency keys is broken")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

/// What a store knows of a key, by its own clock.
#[derive(Clone, Debug)]
pub struct StoredKey {
    /// What was asked for.
    pub fingerprint: Fingerprint,
    /// Who was at work on it last.
    pub run: RunId,
    /// What is left of their lease, zero if it ran out; `None` once there is an answer.
    pub lease_left: Option<Duration>,
    /// Whether the key need not be remembered any longer.
    pub expired: bool,
    /// The answer, if there is one.
    pub answer: Vec<u8>,
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// That is the answer.
    Answer(Begun),
    /// Whoever asks takes the key, provided that it has not changed meanwhile.
    Take,
}

impl StoredKey {
    /// Decides what somebody gets who asks to run under a key that is known: the same in every store.
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
            // Its answer was lost: it is sent again.
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
