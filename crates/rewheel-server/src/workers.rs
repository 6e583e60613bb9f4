//! Tracks remote workers: their latest heartbeats and the kinds they ask for.

mod request;
mod job_result;

#[cfg(test)]
pub(crate) use self::job_result::JOB_RESULT_FIELDS;
#[cfg(test)]
pub(crate) use self::request::{
    CHECKPOINT_FIELDS, CLAIM_FIELDS, EXTEND_FIELDS, HEARTBEAT_FIELDS, LEAVE_FIELDS, RESULT_FIELDS,
    SETTLE_FIELDS,
};
pub(crate) use self::request::{
    CheckpointRequest, ClaimRequest, ExtendRequest, HeartbeatRequest, LeaveRequest, SettleRequest,
};

use rewheel::{Clock, Moment};
use rewheel_core::{HolderId, KindName};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of tracked workers. Others are served, too, but their lost jobs are found later.
const WORKERS_MAX: usize = 10_000;

/// How long after a claim for a kind the kind counts as served by workers.
const RUN_FOR: Duration = Duration::from_secs(60);

/// The workers that this server knows, and when it last heard from them.
#[derive(Debug)]
pub(crate) struct Workers {
    clock: Clock,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The latest heartbeat of each worker.
    heartbeats: HashMap<HolderId, Moment>,
    /// The latest claim for each kind.
    asked: BTreeMap<KindName, Moment>,
}

impl Workers {
    pub(crate) fn new() -> Workers {
        Workers { clock: Clock::system(), seen: Mutex::default() }
    }

    /// Records a heartbeat. Returns the time since the previous one, if it came to this server.
    pub(crate) fn heartbeat(&self, worker: HolderId, lease_ttl: Duration) -> Option<Duration> {
        let now = self.clock.now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.heartbeats.len() >= WORKERS_MAX {
            seen.heartbeats.retain(|_, at| now.since(*at) < lease_ttl);
        }
        if seen.heartbeats.len() >= WORKERS_MAX {
            return None;
        }
        seen.heartbeats.insert(worker, now).map(|before| now.since(before))
    }

    pub(crate) fn forget(&self, worker: HolderId) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).heartbeats.remove(&worker);
    }

    /// Records a claim for these kinds.
    pub(crate) fn asks(&self, kinds: &[KindName]) {
        let now = self.clock.now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for kind in kinds {
            seen.asked.insert(kind.clone(), now);
        }
    }

    /// Returns whether a worker asked for jobs of a kind recently.
    pub(crate) fn run(&self, kind: &KindName) -> bool {
        let now = self.clock.now();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.asked.get(kind).is_some_and(|at| now.since(*at) < RUN_FOR)
    }
}
