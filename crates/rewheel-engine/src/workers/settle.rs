//! Writes what became of attempts that a worker made.

use super::{RemoteWorker, WorkerError};
use crate::{attempt, budget, park, trace};
use rewheel_core::store::{Answer, Outcome, Settled, Settlement, StoreError, halving};
use rewheel_core::{Job, JobId, KindName, Lease, Report, State, Status, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// What became of an attempt that a worker made.
#[derive(Clone, Debug)]
pub struct WorkerResult {
    /// Which job, under which fence.
    pub lease: Lease,
    /// What the worker says.
    pub report: Report,
    /// How long it took, where the worker says so.
    pub took: Duration,
}

/// What became of a [`WorkerResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerSettled {
    /// It is durable, and the job is this now.
    Settled(State),
    /// The job was another's by then, or is gone: what the worker did is not what counts.
    Lost,
}

impl RemoteWorker<'_> {
    /// Writes what became of attempts that a worker made, by the rules and the policy of their kinds.
    /// One answer for each, in order.
    ///
    /// # Errors
    /// [`WorkerError::Expired`] where the worker's lease ran out and none of the results counts. Otherwise passes on what the
    /// store says; results that were written are recognised when they are sent again.
    pub async fn settle(
        &self,
        results: Vec<WorkerResult>,
    ) -> Result<Vec<WorkerSettled>, WorkerError> {
        let shared = self.shared();
        let ids: Vec<JobId> = results.iter().map(|result| result.lease.job).collect();
        let live = shared.store.live(&ids).await?;
        let live: BTreeMap<JobId, Job> = live.into_iter().map(|job| (job.id, job)).collect();
        let has_deadlines = live.values().any(|job| job.deadline.is_some());
        let now = if has_deadlines { Some(shared.store.now().await?) } else { None };
        let mut settlements: Vec<Settlement> = Vec::with_capacity(results.len());
        let mut kinds = BTreeMap::new();
        for result in results {
            let settlement = match live.get(&result.lease.job) {
                Some(job) => {
                    kinds.insert(job.id, job.lane.kind.clone());
                    self.settlement(job, now, result).await?
                }
                // It has ended, is gone, or never was: the store says what it knows.
                None => {
                    let ended = shared.store.get(result.lease.job).await?;
                    kinds.extend(ended.map(|job| (job.id, job.lane.kind)));
                    Settlement::succeed(result.lease)
                }
            };
            settlements.push(settlement);
        }
        let answers = halving(&settlements, |part| shared.store.settle(self.id, part)).await?;
        let mut settled = Vec::with_capacity(settlements.len());
        for (settlement, answer) in settlements.iter().zip(answers) {
            settled.push(self.settled(settlement, answer, &kinds)?);
        }
        // Results that arrive before the sweep still count. Where none does, the worker must hear that it expired.
        let counts = settled.iter().any(|one| *one != WorkerSettled::Lost);
        if !counts && self.is_expired().await? {
            return Err(WorkerError::Expired(self.id));
        }
        Ok(settled)
    }

    async fn is_expired(&self) -> Answer<bool> {
        let holder = self.shared().store.holder(self.id).await?;
        Ok(holder.is_none_or(|holder| holder.died.is_some()))
    }

    async fn settlement(
        &self,
        job: &Job,
        now: Option<Timestamp>,
        result: WorkerResult,
    ) -> Answer<Settlement> {
        let shared = self.shared();
        let deadline_in = job.deadline.zip(now).map(|(deadline, now)| deadline.since(now));
        let kind = self.known_kind(&job.lane.kind).await?;
        let WorkerResult { lease, report, took } = result;
        let is_mine = matches!(&job.status, Status::Leased { holder, .. } if *holder == self.id);
        let is_current = is_mine && job.fence == lease.fence;
        if is_current {
            let spoke = park::speaks(&report);
            shared.admission.worker_spoke(self.id, &job.lane.kind, spoke.as_ref());
            if budget::is_retry(job) && matches!(report, Report::Done) {
                shared.admission.worker_succeeded(&job.lane.kind);
            }
        }
        let settlement = attempt::settlement_of(shared, &kind, job, deadline_in, report, took);
        if is_current {
            trace::settled(job, kind.policy(job).attempts_max, &settlement);
        }
        Ok(Settlement { lease, ..settlement })
    }

    fn settled(
        &self,
        settlement: &Settlement,
        answer: Result<Settled, StoreError>,
        kinds: &BTreeMap<JobId, KindName>,
    ) -> Answer<WorkerSettled> {
        let shared = self.shared();
        let (outcome, is_news) = match answer? {
            Settled::Applied(outcome) => (outcome, true),
            Settled::AlreadyApplied(outcome) => (outcome, false),
            Settled::Lost => return Ok(WorkerSettled::Lost),
        };
        let state = match outcome {
            Outcome::LetGo(state) => state,
            Outcome::Kept { .. } => State::Leased,
            Outcome::Gone if kinds.contains_key(&settlement.lease.job) => State::Succeeded,
            Outcome::Gone => return Ok(WorkerSettled::Lost),
        };
        if !is_news {
            // It was counted when it was new, and told.
            return Ok(WorkerSettled::Settled(state));
        }
        if state == State::Dead {
            shared.note_dead([settlement.lease.job]);
        }
        if let Some(kind) = kinds.get(&settlement.lease.job) {
            let meters = shared.reports.meters.kind(kind);
            meters.settled.count(settlement);
            meters.duration.took(settlement.ran.duration);
            if state == State::Dead {
                meters.died_of(settlement);
            }
            shared.reports.events.tell([(settlement.lease.job, kind, Some(State::Leased), state)]);
        }
        Ok(WorkerSettled::Settled(state))
    }
}
