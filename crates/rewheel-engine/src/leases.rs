//! The engine's own lease, and the jobs it holds.

use crate::follow_ups::OldestHolder;
use crate::pending_calls::PendingCalls;
use crate::shared::lock;
use rewheel::{CancelToken, Moment};
use rewheel_core::store::Settled;
use rewheel_core::{Fence, HolderId, JobId, Lease};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The lease of this engine, and those of its jobs.
#[derive(Debug)]
pub(crate) struct Leases {
    holder: Mutex<HolderId>,
    held: Mutex<BTreeMap<JobId, Held>>,
    /// Store calls in progress that may return leases.
    pub(crate) calls: PendingCalls,
    /// Whether to search for jobs whose lease was lost with a store response.
    pub(crate) are_audited: bool,
    given_back: AtomicUsize,
    lease_expired: AtomicBool,
    /// When the last successful renewal was sent.
    renewed: Mutex<Moment>,
    /// The living holder with the oldest release, as far as this engine knows.
    oldest_holder: Mutex<Option<OldestHolder>>,
}

/// A job that this engine holds.
#[derive(Debug)]
struct Held {
    fence: Fence,
    /// Set once it runs: a waiting job is not cancelled.
    cancel: Option<CancelToken>,
}

impl Leases {
    pub(crate) fn new(
        holder: HolderId,
        calls: PendingCalls,
        are_audited: bool,
        now: Moment,
    ) -> Leases {
        Leases {
            holder: Mutex::new(holder),
            held: Mutex::default(),
            calls,
            are_audited,
            given_back: AtomicUsize::new(0),
            lease_expired: AtomicBool::new(false),
            renewed: Mutex::new(now),
            oldest_holder: Mutex::default(),
        }
    }

    /// Returns the living holder with the oldest release.
    pub(crate) fn oldest_holder(&self) -> Option<OldestHolder> {
        lock(&self.oldest_holder).clone()
    }

    pub(crate) fn set_oldest_holder(&self, oldest: Option<OldestHolder>) {
        *lock(&self.oldest_holder) = oldest;
    }

    pub(crate) fn holder(&self) -> HolderId {
        *lock(&self.holder)
    }

    pub(crate) fn set_holder(&self, holder: HolderId) {
        *lock(&self.holder) = holder;
    }

    /// Records that this engine holds a job.
    pub(crate) fn hold(&self, lease: Lease) {
        let held = Held { fence: lease.fence, cancel: None };
        lock(&self.held).insert(lease.job, held);
    }

    /// Records that it no longer holds the job; a newer lease of it stays.
    pub(crate) fn forget(&self, lease: Lease) {
        let mut held = lock(&self.held);
        if held.get(&lease.job).is_some_and(|held| held.fence <= lease.fence) {
            held.remove(&lease.job);
        }
    }

    pub(crate) fn holds(&self, lease: Lease) -> bool {
        lock(&self.held).get(&lease.job).is_some_and(|held| held.fence == lease.fence)
    }

    /// Returns whether the engine holds a job that has not started.
    pub(crate) fn is_waiting(&self, lease: Lease) -> bool {
        let held = lock(&self.held);
        held.get(&lease.job).is_some_and(|held| held.fence == lease.fence && held.cancel.is_none())
    }

    /// Returns the leases of all jobs that have not started.
    pub(crate) fn waiting(&self) -> Vec<Lease> {
        let held = lock(&self.held);
        let waiting = held.iter().filter(|(_, held)| held.cancel.is_none());
        waiting.map(|(job, held)| Lease { job: *job, fence: held.fence }).collect()
    }

    /// Records that a job starts. Returns the cancel token for its handler; `None` if the engine no longer holds the job, or has
    /// a newer lease.
    pub(crate) fn begin(&self, lease: Lease) -> Option<CancelToken> {
        let mut held = lock(&self.held);
        let held = held.get_mut(&lease.job).filter(|held| held.fence == lease.fence)?;
        Some(held.cancel.insert(CancelToken::new()).clone())
    }

    /// Cancels a handler.
    pub(crate) fn cancel(&self, lease: Lease) {
        if let Some(held) = lock(&self.held).get(&lease.job).filter(|h| h.fence == lease.fence)
            && let Some(cancel) = &held.cancel
        {
            cancel.cancel();
        }
    }

    /// Cancels every handler.
    pub(crate) fn cancel_all(&self) {
        for cancel in lock(&self.held).values().filter_map(|held| held.cancel.as_ref()) {
            cancel.cancel();
        }
    }

    /// Returns the number of jobs that this engine holds.
    pub(crate) fn count(&self) -> usize {
        lock(&self.held).len()
    }

    /// Counts the jobs that the store took back.
    pub(crate) fn note_given_back(&self, answers: &[Settled]) {
        let applied = answers.iter().filter(|answer| matches!(answer, Settled::Applied(_)));
        self.given_back.fetch_add(applied.count(), Ordering::Relaxed);
    }

    /// Returns the number of jobs given back so far.
    pub(crate) fn given_back(&self) -> usize {
        self.given_back.load(Ordering::Relaxed)
    }

    /// Returns whether the engine's own lease may have expired.
    pub(crate) fn are_doubtful(&self) -> bool {
        self.lease_expired.load(Ordering::Acquire)
    }

    /// Sets it. Returns whether it changed.
    pub(crate) fn set_lease_expired(&self, lease_expired: bool) -> bool {
        self.lease_expired.swap(lease_expired, Ordering::AcqRel) != lease_expired
    }

    /// Returns when the last successful renewal was sent; the start of the engine if there was none yet.
    pub(crate) fn renewed(&self) -> Moment {
        *lock(&self.renewed)
    }

    pub(crate) fn set_renewed(&self, renewed: Moment) {
        *lock(&self.renewed) = renewed;
    }
}
