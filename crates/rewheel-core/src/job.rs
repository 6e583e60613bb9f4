//! A job as it is submitted.

use crate::id::JobId;
use crate::name::{Key, KindName, Tenant};
use crate::priority::Priority;
use crate::timestamp::Timestamp;
use rewheel::Backoff;
use std::time::Duration;

/// A point in time, said from where one stands or outright.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// So long after the store commits it.
    In(Duration),
    /// At this instant of the store's clock.
    At(Timestamp),
}

impl When {
    /// Returns the instant, where the store's clock says `now`.
    ///
    /// ```
    /// use rewheel_core::{Timestamp, When};
    /// use std::time::Duration;
    ///
    /// let now = Timestamp::from_millis(5_000);
    /// assert_eq!(When::In(Duration::from_secs(1)).resolve(now), Timestamp::from_millis(6_000));
    /// ```
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            When::In(duration) => now.plus(duration),
            When::At(at) => at,
        }
    }
}

/// A job to be stored. The names in it are proof that they follow the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Made by the submitter, so that an insert whose answer was lost can be repeated.
    pub id: JobId,
    /// What sort of work it is.
    pub kind: KindName,
    /// On whose behalf.
    pub tenant: Option<Tenant>,
    /// What makes submitting it again harmless.
    pub key: Option<Key>,
    /// Which runs first.
    pub priority: Priority,
    /// The input, as bytes that only its runner understands.
    pub payload: Vec<u8>,
    /// When it may first run.
    pub due: When,
    /// When nobody wants it any more.
    pub deadline: Option<When>,
    /// How many attempts it gets; the kind's setting if it does not say.
    pub attempts_max: Option<u32>,
    /// How long one attempt may take; the kind's setting if it does not say.
    pub attempt_timeout: Option<Duration>,
    /// How long to wait between attempts; the kind's setting if it does not say.
    pub backoff: Option<Backoff>,
    /// The trace that the submitter was in.
    pub traceparent: Option<String>,
}

impl NewJob {
    /// Starts with what a job must have: due at once, everything else as its kind says.
    pub fn new(id: JobId, kind: KindName, payload: Vec<u8>) -> NewJob {
        NewJob {
            id,
            kind,
            tenant: None,
            key: None,
            priority: Priority::DEFAULT,
            payload,
            due: When::In(Duration::ZERO),
            deadline: None,
            attempts_max: None,
            attempt_timeout: None,
            backoff: None,
            traceparent: None,
        }
    }

    /// Returns the lane it waits in.
    pub fn lane(&self) -> Lane {
        Lane { kind: self.kind.clone(), tenant: self.tenant.clone(), priority: self.priority }
    }
}

/// One range of the index that jobs are claimed from: the unit of fairness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// Of what kind.
    pub kind: KindName,
    /// On whose behalf.
    pub tenant: Option<Tenant>,
    /// How urgent.
    pub priority: Priority,
}
