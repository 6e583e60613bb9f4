//! Remote workers: registration and heartbeats of workers in other processes.
//!
//! A worker is a holder with its own lease. All its data is in the store, so a worker may send its requests to any engine of
//! a fleet. All calls for a worker are methods of [`RemoteWorker`], and only the owner of the worker can get this value.

mod owners;
mod claim;
mod lanes;
mod settle;

pub(crate) use self::lanes::WorkerLanes;
pub(crate) use self::owners::Owners;
pub use self::settle::{WorkerResult, WorkerSettled};

use crate::engine::Engine;
use crate::kinds::KindEntry;
use crate::shared::Shared;
use rewheel_core::store::{Extension, StoreError, StoreResult};
use rewheel_core::{
    Format, HolderId, JobId, KindName, Lease, Limits, NewHolder, Role, Timestamp, Wanted,
    WorkerOwner,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Data about workers that this engine caches.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    pub(crate) owners: Owners,
    pub(crate) lanes: WorkerLanes,
}

/// A worker, as its owner sees it. This value proves that the worker exists and that the caller created it.
#[derive(Debug)]
pub struct RemoteWorker<'a> {
    engine: &'a Engine,
    id: HolderId,
}

/// Why a caller cannot act for a holder.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The holder does not exist, or is dead.
    #[error("holder {0} has expired: register again")]
    Expired(HolderId),
    /// Another caller created it, or it is an engine.
    #[error(
        "holder {0} was not registered by this caller: use the id that you got when you registered"
    )]
    NotOwner(HolderId),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for WorkerError {
    fn from(error: StoreError) -> WorkerError {
        match error {
            StoreError::HolderDead(id) => WorkerError::Expired(id),
            error @ (StoreError::Unavailable(_)
            | StoreError::Ambiguous(_)
            | StoreError::Full(_)
            | StoreError::Rejected(_)
            | StoreError::Broken { .. }
            | StoreError::Closed) => WorkerError::Store(error),
        }
    }
}

/// Result of a worker's heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// Jobs that the worker should stop, because a user cancelled or paused them.
    pub cancel: Vec<JobId>,
    /// Number of jobs that were given back because the heartbeat did not list them: the worker never got them, or has lost them.
    pub given_back: usize,
}

impl Engine {
    /// Registers a worker for a caller.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn worker_joins(
        &self,
        name: &str,
        owner: WorkerOwner,
    ) -> StoreResult<RemoteWorker<'_>> {
        let shared = self.shared();
        let id = shared.new_holder_id();
        let (role, lease_ttl) = (Role::Worker { owner }, shared.settings.lease_ttl);
        let holder =
            NewHolder { id, name: name.to_owned(), role, lease_ttl, format: Format::CURRENT };
        shared.store.join(&holder).await?;
        shared.workers.owners.remember(id, owner);
        Ok(RemoteWorker { engine: self, id })
    }

    /// Finds a worker for the caller that created it.
    ///
    /// # Errors
    /// Fails with [`WorkerError::Expired`] if the holder does not exist, with [`WorkerError::NotOwner`] if another caller created
    /// it or it is an engine, and with [`WorkerError::Store`] if the store fails.
    pub async fn worker(
        &self,
        id: HolderId,
        caller: WorkerOwner,
    ) -> Result<RemoteWorker<'_>, WorkerError> {
        let shared = self.shared();
        let owner = match shared.workers.owners.find(id) {
            Some(owner) => owner,
            None => {
                let holder = shared.store.holder(id).await?.ok_or(WorkerError::Expired(id))?;
                let owner = holder.role.owner().ok_or(WorkerError::NotOwner(id))?;
                shared.workers.owners.remember(id, owner);
                owner
            }
        };
        if !owner.admits(caller) {
            return Err(WorkerError::NotOwner(id));
        }
        Ok(RemoteWorker { engine: self, id })
    }
}

impl RemoteWorker<'_> {
    /// Returns its id.
    pub fn id(&self) -> HolderId {
        self.id
    }

    fn shared(&self) -> &Shared {
        self.engine.shared()
    }

    /// Renews the worker's lease, and returns what users requested for its jobs. Gives back jobs that the worker has had for
    /// longer than `older_than`, if its heartbeat does not list them.
    ///
    /// # Errors
    /// Fails with [`WorkerError::Expired`] if the worker's lease has expired: the worker must drop all work, and register again.
    pub async fn heartbeat(
        &self,
        jobs: &BTreeSet<JobId>,
        older_than: Option<Duration>,
    ) -> Result<HeartbeatReply, WorkerError> {
        let renewed = self.shared().store.renew(self.id).await?;
        let cancel = |wanted: Wanted| matches!(wanted, Wanted::Cancel | Wanted::Pause);
        let wanted = renewed.wanted.iter().filter(|one| cancel(one.wanted));
        let cancel = wanted.map(|one| one.lease.job).collect();
        let given_back = match older_than {
            Some(older_than) => self.give_back(older_than, |job| !jobs.contains(&job)).await?,
            None => 0,
        };
        Ok(HeartbeatReply { cancel, given_back })
    }

    /// Gives a running attempt more time: `timeout` from now, and in total no more than its kind allows. Returns when the attempt
    /// is overdue now; `None` if the worker no longer has the job.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn extend(&self, lease: Lease, timeout: Duration) -> StoreResult<Option<Timestamp>> {
        let shared = self.shared();
        let Some(job) = shared.store.get(lease.job).await? else { return Ok(None) };
        let total_max = self.known_kind(&job.lane.kind).await?.ceilings.attempt_timeout();
        let extension =
            Extension { lease, timeout, total_max, grace: shared.settings.overdue_grace };
        shared.store.extend(self.id, &extension).await
    }

    /// Replaces the payload of a job that the worker runs, durably: the next attempt gets the new payload, on any worker.
    /// Returns whether the worker still has the job.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn checkpoint(&self, lease: Lease, payload: &[u8]) -> StoreResult<bool> {
        self.shared().store.checkpoint(self.id, lease, payload).await
    }

    /// Deregisters the worker, after giving back its jobs. Returns the number of jobs given back. Repeating it changes nothing.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn leave(self) -> StoreResult<usize> {
        let given_back = self.give_back(Duration::ZERO, |_| true).await?;
        self.shared().store.leave(self.id).await?;
        Ok(given_back)
    }

    /// Gives back jobs that the worker has had for longer than `older_than`, if `is_lost` returns true.
    async fn give_back(
        &self,
        older_than: Duration,
        is_lost: impl Fn(JobId) -> bool,
    ) -> StoreResult<usize> {
        let shared = self.shared();
        let (mut given_back, mut after) = (0, None);
        loop {
            let held = shared.store.held(self.id, older_than, after, Limits::BATCH_MAX).await?;
            after = held.last().map(|lease| lease.job);
            let is_full = held.len() == Limits::BATCH_MAX;
            let lost: Vec<Lease> = held.into_iter().filter(|lease| is_lost(lease.job)).collect();
            if !lost.is_empty() {
                shared.store.give_back(self.id, &lost, shared.retain_ended()).await?;
                given_back += lost.len();
            }
            if !is_full {
                return Ok(given_back);
            }
        }
    }

    /// Returns the kind of existing jobs; asks the store for a kind that this engine does not know yet.
    async fn known_kind(&self, name: &KindName) -> StoreResult<Arc<KindEntry>> {
        let shared = self.shared();
        if shared.kind(name).is_none() {
            shared.read_kinds().await?;
        }
        shared.kind(name).ok_or_else(|| StoreError::Broken {
            what: format!(
                "kind `{name}` has jobs but does not exist in the store: define the kind again"
            ),
            source: None,
        })
    }
}
