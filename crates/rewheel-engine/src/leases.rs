//! The engine's own lease, and the jobs it holds.

use crate::calls::Calls;
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
    /// Calls on their way that may bring leases.
    pub(crate) calls: Calls,
    /// Whether to look for jobs that were leased without an answer.
    pub(crate) are_audited: bool,
    given_back: AtomicUsize,
    doubtful: AtomicBool,
    /// When the last renewal was sent that succeeded.
    renewed: Mutex<Moment>,
}

/// A job in this engine's hands.
#[derive(Debug)]
struct Held {
    fence: Fence,
    /// Set once it runs: what only waits is not told to stop.
    cancel: Option<CancelToken>,
}

impl Leases {
    pub(crate) fn new(holder: HolderId, calls: Calls, are_audited: bool, now: Moment) -> Leases {
        Leases {
            holder: Mutex::new(holder),
            held: Mutex::default(),
            calls,
            are_audited,
            given_back: AtomicUsize::new(0),
            doubtful: AtomicBool::new(false),
            renewed: Mutex::new(now),
        }
    }

    pub(crate) fn holder(&self) -> HolderId {
        *lock(&self.holder)
    }

    pub(crate) fn set_holder(&self, holder: HolderId) {
        *lock(&self.holder) = holder;
    }

    /// Notes that a job is in this engine's hands.
    pub(crate) fn hold(&self, lease: Lease) {
        let held = Held { fence: lease.fence, cancel: None };
        lock(&self.held).insert(lease.job, held);
    }

    /// Notes that it no longer is; a newer lease of it stays.
    pub(crate) fn forget(&self, lease: Lease) {
        let mut held = lock(&self.held);
        if held.get(&lease.job).is_some_and(|held| held.fence <= lease.fence) {
            held.remove(&lease.job);
        }
    }

    pub(crate) fn holds(&self, lease: Lease) -> bool {
        lock(&self.held).get(&lease.job).is_some_and(|held| held.fence == lease.fence)
    }

    /// Notes that a job in this engine's hands starts. Returns what tells its handler to stop;
    /// nothing if the job is not in its hands any more, or by a newer lease.
    pub(crate) fn begin(&self, lease: Lease) -> Option<CancelToken> {
        let mut held = lock(&self.held);
        let held = held.get_mut(&lease.job).filter(|held| held.fence == lease.fence)?;
        Some(held.cancel.insert(CancelToken::new()).clone())
    }

    /// Tells a handler to stop.
    pub(crate) fn cancel(&self, lease: Lease) {
        if let Some(held) = lock(&self.held).get(&lease.job).filter(|h| h.fence == lease.fence)
            && let Some(cancel) = &held.cancel
        {
            cancel.cancel();
        }
    }

    /// Tells every handler to stop.
    pub(crate) fn cancel_all(&self) {
        for cancel in lock(&self.held).values().filter_map(|held| held.cancel.as_ref()) {
            cancel.cancel();
        }
    }

    /// Returns how many jobs are in this engine's hands.
    pub(crate) fn count(&self) -> usize {
        lock(&self.held).len()
    }

    /// Counts what the store took back.
    pub(crate) fn note_given_back(&self, answers: &[Settled]) {
        let applied = answers.iter().filter(|answer| matches!(answer, Settled::Applied(_)));
        self.given_back.fetch_add(applied.count(), Ordering::Relaxed);
    }

    /// Returns how many jobs were given back so far.
    pub(crate) fn given_back(&self) -> usize {
        self.given_back.load(Ordering::Relaxed)
    }

    /// Returns whether the engine's own lease may have run out.
    pub(crate) fn are_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Acquire)
    }

    /// Returns whether that is news.
    pub(crate) fn set_doubtful(&self, doubtful: bool) -> bool {
        self.doubtful.swap(doubtful, Ordering::AcqRel) != doubtful
    }

    /// Returns when the last renewal was sent that succeeded; when the engine started, if none was yet.
    pub(crate) fn renewed(&self) -> Moment {
        *lock(&self.renewed)
    }

    pub(crate) fn set_renewed(&self, renewed: Moment) {
        *lock(&self.renewed) = renewed;
    }
}
