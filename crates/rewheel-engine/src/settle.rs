//! The settle loop: writes the results of attempts in batches.

use crate::attempt;
use crate::shared::{Command, Finished, Shared};
use crate::supervise;
use rewheel::{Backoff, Category, Retry, Retryable, millis, seconds};
use rewheel_core::store::{Outcome, Settled, Settlement, StoreError, halving};
use rewheel_core::{Decision, Failure, HolderId, Limits, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Retries until an unavailable store is back: this is the only place that repeats a settle, since a retry inside it makes one
/// attempt. Results are safe meanwhile: their slots stay taken, so their number is limited.
const UNTIL_BACK: Retry =
    Retry::new(Backoff::exponential(millis(20)).max(seconds(1))).attempts_max(u32::MAX);

/// Number of results that are worth a settle, with none in progress and with one: the store is never idle while there is much to
/// do, and gets small requests only when it is idle.
const WORTH_A_SETTLE: [usize; 2] = [1, Limits::BATCH_MAX / 2];

pub(crate) struct Settles {
    shared: Arc<Shared>,
    finished: mpsc::UnboundedReceiver<Finished>,
}

impl Settles {
    pub(crate) fn new(shared: Arc<Shared>, finished: mpsc::UnboundedReceiver<Finished>) -> Settles {
        Settles { shared, finished }
    }

    /// Settles until no attempt can finish any more. Results that arrive during a settle wait until it ends, or until there are
    /// many.
    pub(crate) async fn run(mut self) {
        let (mut batch, mut on_the_way, mut is_open) = (Vec::new(), JoinSet::new(), true);
        loop {
            let room = Limits::BATCH_MAX - batch.len();
            tokio::select! {
                biased;
                Some(settled) = on_the_way.join_next() => { supervise::pass_on(settled); }
                count = self.finished.recv_many(&mut batch, room), if is_open && room > 0 => {
                    is_open = count > 0;
                }
                else => return,
            }
            if batch.len() >= WORTH_A_SETTLE.get(on_the_way.len()).copied().unwrap_or(usize::MAX) {
                let settle = Settle { shared: Arc::clone(&self.shared) };
                on_the_way.spawn(settle.all(std::mem::take(&mut batch)));
            }
        }
    }
}

/// Results on their way to the store.
struct Settle {
    shared: Arc<Shared>,
}

impl Settle {
    async fn all(self, batch: Vec<Finished>) {
        let call = self.shared.leases.calls.begin();
        let frees_places = batch.iter().any(|finished| finished.slot.is_some());
        // A holder that died and registered again has results under both ids.
        let mut by_holder: Vec<(HolderId, Vec<Finished>)> = Vec::new();
        for finished in batch {
            let holder = finished.waiting.holder;
            match by_holder.iter_mut().find(|(known, _)| *known == holder) {
                Some((_, some)) => some.push(finished),
                None => by_holder.push((holder, vec![finished])),
            }
        }
        for (holder, some) in by_holder {
            self.settle_for(holder, some).await;
        }
        call.end();
        // Returning put-off retries must not wake the claim loop: other engines may have a grant for them.
        if frees_places {
            let _ = self.shared.signals.to_dispatch.send(Command::Place);
            self.shared.signals.look.notify_one();
        }
    }

    async fn settle_for(&self, holder: HolderId, batch: Vec<Finished>) {
        let settlements: Vec<Settlement> =
            batch.iter().map(|finished| finished.settlement.clone()).collect();
        let store = &self.shared.store;
        let settled = (|| halving(&settlements, |part| store.settle(holder, part)))
            .retry(UNTIL_BACK)
            .when(StoreError::is_transient)
            .random(&self.shared.random)
            .await;
        let answers = settled.unwrap_or_else(|error| {
            tracing::error!(%error, results = settlements.len(), "results lost: the lease of this node expired, or the store failed; the jobs run again");
            self.shared.notify_persist(None, settlements.len(), &error);
            settlements.iter().map(|_| Ok(Settled::Lost)).collect()
        });
        let mut submitted = Vec::new();
        for (mut finished, mut answer) in batch.into_iter().zip(answers) {
            if let Err(error) = &answer {
                self.shared.notify_persist(Some(finished.settlement.lease.job), 1, error);
                finished.settlement = unstorable(&finished.settlement, error);
                answer = self.settle_one(holder, &finished.settlement).await;
            }
            if let Ok(Settled::Applied(_) | Settled::AlreadyApplied(_)) = answer {
                submitted.append(&mut finished.settlement.follow_ups);
            }
            self.after(finished, answer);
        }
        self.shared.tell_of_follow_ups(&submitted).await;
    }

    async fn settle_one(
        &self,
        holder: HolderId,
        settlement: &Settlement,
    ) -> Result<Settled, StoreError> {
        let store = &self.shared.store;
        let answers = (|| store.settle(holder, std::slice::from_ref(settlement)))
            .retry(UNTIL_BACK)
            .when(StoreError::is_transient)
            .random(&self.shared.random)
            .await;
        let answers = answers.map_err(|error| error.into_last().unwrap_or(StoreError::Closed))?;
        Ok(answers.first().copied().unwrap_or(Settled::Lost))
    }

    fn after(&self, finished: Finished, answer: Result<Settled, StoreError>) {
        let Finished { mut waiting, settlement, slot } = finished;
        // A put-off job is not a decision about an attempt.
        let is_counted = slot.is_some();
        // Only now: a slot that is freed before its result is durable would admit more than can be kept.
        drop(slot);
        let lease = settlement.lease;
        let decision = settlement.decision.as_str();
        if let Ok(Settled::Applied(outcome) | Settled::AlreadyApplied(outcome)) = answer
            && is_counted
        {
            let meters = self.shared.reports.meters.kind(&waiting.job.lane.kind);
            meters.settled.count(&settlement);
            let attempts = attempt::number(&waiting.job);
            meters.settled_after(attempts, &settlement.decision, outcome);
        }
        match answer {
            Ok(
                Settled::Applied(Outcome::Kept { fence, due_in })
                | Settled::AlreadyApplied(Outcome::Kept { fence, due_in }),
            ) => {
                let wait = settlement.decision.wait();
                waiting.previous = wait.map(|(after, _)| after);
                let job = Arc::make_mut(&mut waiting.job);
                job.because = wait.map_or(job.because, |(_, because)| because);
                job.fence = fence;
                job.attempt += 1;
                job.failure = settlement.failure;
                waiting.due = self.shared.moment_in(due_in);
                waiting.overdue = Duration::ZERO;
                self.shared.leases.hold(waiting.lease());
                let _ = self.shared.signals.to_dispatch.send(Command::Leased(vec![waiting]));
            }
            Ok(Settled::Applied(outcome) | Settled::AlreadyApplied(outcome)) => {
                tracing::debug!(job = %lease.job, decision, ?outcome, "settled");
                if let Outcome::LetGo(to) = outcome {
                    let kind = &waiting.job.lane.kind;
                    self.shared.reports.events.tell([(lease.job, kind, Some(State::Leased), to)]);
                }
                if outcome == Outcome::LetGo(State::Dead) {
                    self.shared.reports.meters.kind(&waiting.job.lane.kind).died_of(&settlement);
                    self.shared.note_dead([lease.job]);
                }
                self.shared.leases.forget(lease);
            }
            Ok(Settled::Lost) => {
                tracing::warn!(job = %lease.job, fence = lease.fence.get(), decision,
                    "result dropped: another holder took over the job, or the job has ended");
                self.shared.leases.forget(lease);
            }
            Err(error) => {
                tracing::error!(job = %lease.job, %error, "the store rejected a result twice: the job runs again after the time limit of its attempt");
                self.shared.leases.forget(lease);
            }
        }
    }
}

/// Returns the replacement for a result that the store refuses: otherwise the job would run again and again, and no attempt would
/// ever count.
fn unstorable(settlement: &Settlement, error: &StoreError) -> Settlement {
    tracing::error!(job = %settlement.lease.job, %error, "the store rejected a result: the job becomes a dead letter");
    let message = "the store rejected the result of this attempt, so the job is dead; the log of the node has the reason";
    let failure = Failure::new(Category::Unknown, Some("result_refused"), message);
    Settlement {
        decision: Decision::Dead { failure: failure.clone() },
        failure: Some(failure),
        // They are of an attempt that succeeded.
        follow_ups: Vec::new(),
        result: None,
        payload: None,
        ..settlement.clone()
    }
}
