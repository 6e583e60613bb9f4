//! Settles the attempts of a remote worker.

use super::{RemoteWorker, WorkerError};
use crate::submit::SubmitError;
use crate::{attempt, budget, follow_ups, output, park, trace};
use rewheel_core::store::{Outcome, Settled, Settlement, StoreError, StoreResult, halving};
use rewheel_core::{
    Failure, GivenResult, Job, JobId, JobResult, KindName, Lease, NewJob, Report, State, Status,
    SuccessCode, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The result of a worker's attempt.
#[derive(Clone, Debug)]
pub struct WorkerResult {
    /// The job and its fence.
    pub lease: Lease,
    /// The report of the worker.
    pub report: Report,
    /// The duration, if the worker reports it.
    pub took: Duration,
    /// Jobs to submit with the result, see [`RemoteWorker::check_follow_up`]. Only with [`Report::Done`] and [`Report::Snooze`].
    pub follow_ups: Vec<NewJob>,
    /// The result of the job: kept if the report is [`Report::Done`] and the kind keeps results.
    pub result: Option<JobResult>,
    /// The code of an attempt that succeeded. That of a failure is part of the report.
    pub code: Option<SuccessCode>,
}

/// Result of settling a [`WorkerResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerSettled {
    /// The result is durable; contains the new state of the job.
    Settled(State),
    /// Another holder has the job, or the job no longer exists: the result was not stored.
    Lost,
}

/// What a result says about the dependency of its kind.
struct Said {
    spoke: Option<Result<(), Failure>>,
    /// Whether it is a retry that succeeded.
    has_retried_well: bool,
    /// How long the called service asked to wait, and what it said.
    asked: Option<(Duration, Failure)>,
}

impl Said {
    fn of(result: &WorkerResult, job: Option<&Job>) -> Said {
        let is_done = matches!(result.report, Report::Done);
        let has_retried_well = is_done && job.is_some_and(budget::is_retry);
        let asked = park::asked_to_wait(&result.report);
        Said { spoke: park::speaks(&result.report), has_retried_well, asked }
    }
}

impl RemoteWorker<'_> {
    /// Settles attempts of a worker, by the rules and the policy of their kinds. Returns one result for each, in order.
    ///
    /// # Errors
    /// Fails with [`WorkerError::Expired`] if the worker's lease has expired and none of the results was accepted. Otherwise
    /// returns the error of the store. Results that were already written are recognized when they are sent again.
    pub async fn settle(
        &self,
        results: Vec<WorkerResult>,
    ) -> Result<Vec<WorkerSettled>, WorkerError> {
        let shared = self.shared();
        let ids: Vec<JobId> = results.iter().map(|result| result.lease.job).collect();
        let live = shared.store.live(&ids).await?;
        let live: BTreeMap<JobId, Job> = live.into_iter().map(|job| (job.id, job)).collect();
        self.hear_of_probes(live.values()).await?;
        let has_deadlines = live.values().any(|job| job.deadline.is_some());
        let now = if has_deadlines { Some(shared.store.now().await?) } else { None };
        let mut settlements: Vec<Settlement> = Vec::with_capacity(results.len());
        let mut kinds = self.kinds_of_ended(&ids, &live).await?;
        let mut said = Vec::with_capacity(results.len());
        for result in results {
            said.push(Said::of(&result, live.get(&result.lease.job)));
            let settlement = match live.get(&result.lease.job) {
                Some(job) => {
                    kinds.insert(job.id, job.lane.kind.clone());
                    self.settlement(job, now, result).await?
                }
                // It has ended, no longer exists, or never existed: the store returns what it knows.
                None => Settlement::succeed(result.lease),
            };
            settlements.push(settlement);
        }
        let answers = halving(&settlements, |part| shared.store.settle(self.id, part)).await?;
        let mut settled = Vec::with_capacity(settlements.len());
        let mut submitted: Vec<NewJob> = Vec::new();
        for ((settlement, answer), said) in settlements.iter().zip(answers).zip(said) {
            let kind = kinds.get(&settlement.lease.job);
            if let (Ok(Settled::Applied(_)), Some(kind)) = (&answer, kind) {
                // Only durable results count, and only once.
                shared.admission.worker_spoke(self.id, kind, said.spoke.as_ref());
                let known = shared.kind(kind).zip(live.get(&settlement.lease.job));
                if let (Some((entry, job)), Some(asked)) = (known, &said.asked) {
                    shared.heed(&entry, job, None, asked);
                }
                if said.has_retried_well {
                    shared.admission.worker_succeeded(kind);
                }
            }
            if let Ok(Settled::Applied(_)) = &answer {
                submitted.extend(settlement.follow_ups.iter().cloned());
            }
            settled.push(self.settled((settlement, answer), &kinds, &live)?);
        }
        shared.tell_of_follow_ups(&submitted).await;
        // Results that arrive before the sweep still count. If none does, the worker must learn that it has expired.
        let counts = settled.iter().any(|one| *one != WorkerSettled::Lost);
        if !counts && self.is_expired().await? {
            return Err(WorkerError::Expired(self.id));
        }
        Ok(settled)
    }

    /// Returns the kinds of those jobs that have ended, with one query for all of them: after a lost response, a worker sends all its
    /// results again.
    async fn kinds_of_ended(
        &self,
        jobs: &[JobId],
        live: &BTreeMap<JobId, Job>,
    ) -> StoreResult<BTreeMap<JobId, KindName>> {
        let ended: Vec<JobId> =
            jobs.iter().filter(|job| !live.contains_key(job)).copied().collect();
        if ended.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.shared().store.find(&ended).await?;
        Ok(found.into_iter().map(|job| (job.id, job.lane.kind)).collect())
    }

    /// Reads kinds that are parked here while another holder may probe them: this worker may have taken the right at another
    /// engine.
    async fn hear_of_probes(&self, jobs: impl Iterator<Item = &Job>) -> StoreResult<()> {
        let shared = self.shared();
        let kinds: BTreeSet<KindName> = jobs.map(|job| job.lane.kind.clone()).collect();
        let is_news = |name: &KindName| {
            let parked = shared.kind(name).and_then(|kind| kind.parked.clone());
            parked.is_some_and(|parked| parked.prober != Some(self.id))
        };
        if kinds.iter().any(is_news) {
            shared.read_kinds().await?;
        }
        Ok(())
    }

    async fn is_expired(&self) -> StoreResult<bool> {
        let holder = self.shared().store.holder(self.id).await?;
        Ok(holder.is_none_or(|holder| holder.died.is_some()))
    }

    async fn settlement(
        &self,
        job: &Job,
        now: Option<Timestamp>,
        result: WorkerResult,
    ) -> StoreResult<Settlement> {
        let shared = self.shared();
        let deadline_in = job.deadline.zip(now).map(|(deadline, now)| deadline.since(now));
        let kind = self.known_kind(&job.lane.kind).await?;
        let WorkerResult { lease, report, took, follow_ups: jobs, result, code } = result;
        let is_mine = matches!(&job.status, Status::Leased { holder, .. } if *holder == self.id);
        let is_current = is_mine && job.fence == lease.fence;
        let said = report.clone();
        let mut settlement = attempt::settlement_of(shared, &kind, job, deadline_in, report, took);
        if follow_ups::carries(&said, &settlement.decision) {
            settlement.follow_ups = self.prepare(jobs, job);
        }
        if output::is_success(&said, &settlement.decision) {
            settlement.code = code;
            settlement.result = result
                .filter(|_| kind.settings.result)
                .map(|result| GivenResult::within(result, shared.settings.result_bytes_max));
        }
        if is_current {
            trace::settled(job, kind.policy(job).attempts_max, &settlement);
        }
        Ok(Settlement { lease, ..settlement })
    }

    /// Checks a follow-up (a job to submit with a result) before the result is settled.
    ///
    /// # Errors
    /// Returns the error in the follow-up.
    pub async fn check_follow_up(&self, job: &NewJob) -> Result<(), SubmitError> {
        let shared = self.shared();
        if shared.kind(&job.kind).is_none() {
            shared.read_kinds().await?;
        }
        shared.check_follow_up(job)
    }

    /// Returns the jobs with what follows from their parent.
    fn prepare(&self, jobs: Vec<NewJob>, parent: &Job) -> Vec<NewJob> {
        let shared = self.shared();
        jobs.into_iter().map(|job| shared.route_follow_up(job, parent)).collect()
    }

    fn settled(
        &self,
        (settlement, answer): (&Settlement, Result<Settled, StoreError>),
        kinds: &BTreeMap<JobId, KindName>,
        live: &BTreeMap<JobId, Job>,
    ) -> StoreResult<WorkerSettled> {
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
            // It was already counted and reported when it was new.
            return Ok(WorkerSettled::Settled(state));
        }
        if state == State::Dead {
            shared.note_dead([settlement.lease.job]);
        }
        if let Some(kind) = kinds.get(&settlement.lease.job) {
            let meters = shared.reports.meters.kind(kind);
            meters.settled.count(settlement);
            if let Some(job) = live.get(&settlement.lease.job) {
                meters.settled_after(attempt::number(job), &settlement.decision, outcome);
            }
            meters.duration.took(settlement.ran.duration);
            if state == State::Dead {
                meters.died_of(settlement);
            }
            shared.reports.events.tell([(settlement.lease.job, kind, Some(State::Leased), state)]);
        }
        Ok(WorkerSettled::Settled(state))
    }
}
