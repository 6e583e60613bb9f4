//! Runs a bulk operation in batches, and resumes where an earlier attempt stopped.

use super::BulkVerb;
use super::canary::{self, Health, Seen};
use super::document::Document;
use crate::checkpoint::CheckpointError;
use crate::events::Log;
use crate::runner::{JobContext, Reporting, Runner};
use rewheel::Category;
use rewheel_core::store::{Change, Changed, Store, StoreError};
use rewheel_core::{Failure, Job, JobId, Limits, Report, Retain, Timestamp};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Jobs per change: as many as one read returns. A transaction of this size blocks others only for some ten milliseconds, and its dozen
/// round trips are shared by enough jobs that a store 5 ms away redrives more than 5,000 jobs a second.
const BATCH_MAX: usize = Limits::PAGE_MAX;

/// Batches of one attempt. Then another job gets the slot.
const STEPS_MAX: usize = 20;

/// How often to retry a job that others change at the same time.
const FOLLOW_MAX: usize = 3;

/// Shortest and longest interval for checking the jobs of a canary.
const LOOK_MIN: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Runs bulk operations.
#[derive(Clone)]
pub(crate) struct Operator {
    store: Arc<dyn Store>,
    keep: Retain,
    events: Arc<Log>,
}

/// What follows a step.
enum Next {
    /// The next step, once the current step is durable.
    Step,
    /// The next step, which also makes this one durable. If the process dies before, the changes are made again and found to be done.
    SaveLater,
    /// The next step, after a delay.
    Wait(Duration),
    /// Nothing: it is done.
    Done,
    /// Nothing: it must not continue, for this reason.
    Stop(String),
}

impl Operator {
    pub(crate) fn new(store: &Arc<dyn Store>, keep: Retain, events: &Arc<Log>) -> Operator {
        Operator { store: Arc::clone(store), keep, events: Arc::clone(events) }
    }

    async fn work(self, context: JobContext) -> Result<(), Report> {
        let id = context.id();
        let mut order = Document::decode(context.payload()).map_err(|why| {
            Report::FailJob(Failure::new(
                Category::BadPayload,
                None,
                &format!("the stored operation is not readable: {why}"),
            ))
        })?;
        // Changes that were started but not recorded as done may have been made already.
        let mut is_again = !order.pending.is_empty();
        for step in 0.. {
            // Never between recording the next jobs and changing them: the next attempt would not know whether that was done.
            let may_rest = order.pending.is_empty();
            if may_rest && (step >= STEPS_MAX || context.cancel().is_cancelled()) {
                save(&context, &order).await?;
                break;
            }
            let next = self.step(id, &mut order, is_again).await?;
            is_again = false;
            match next {
                Next::Step => save(&context, &order).await?,
                Next::SaveLater => {}
                Next::Wait(wait) => {
                    save(&context, &order).await?;
                    return Err(Report::snooze(wait));
                }
                Next::Done => {
                    save(&context, &order).await?;
                    return Ok(());
                }
                Next::Stop(why) => {
                    order.reason = Some(why.clone());
                    save(&context, &order).await?;
                    return Err(Report::fail_job(why));
                }
            }
        }
        Err(Report::snooze(Duration::ZERO))
    }

    async fn step(
        &self,
        id: JobId,
        order: &mut Document,
        is_again: bool,
    ) -> Result<Next, StoreError> {
        if !order.pending.is_empty() {
            return self.change(id, order, is_again).await;
        }
        let left = order.step_size().map(|size| size.saturating_sub(order.watched.len()));
        if left == Some(0) || (order.is_read && !order.watched.is_empty()) {
            return self.watch(order).await;
        }
        if order.is_read {
            return Ok(Next::Done);
        }
        let second = Duration::from_secs(1);
        let rated = order.rate.map_or(BATCH_MAX, |rate| rate.within(second, 1));
        let limit = BATCH_MAX.min(rated).min(left.unwrap_or(BATCH_MAX));
        let mut batch = order.filter.batch(&*self.store, order.cursor(), limit).await?;
        // Jobs that died after the order was given are not included.
        let began = Timestamp::from_millis(order.began_ms);
        batch.jobs.retain(|job| job.status.finished().is_none_or(|ended| ended <= began));
        order.intend(&batch.jobs, batch.next);
        Ok(Next::Step)
    }

    /// Changes the recorded jobs.
    async fn change(
        &self,
        id: JobId,
        order: &mut Document,
        is_again: bool,
    ) -> Result<Next, StoreError> {
        let changes = order.changes();
        let mut answers = self.store.change(&changes, &order.actor(id), self.keep).await?;
        if order.verb() != BulkVerb::Redrive {
            self.follow(id, order, &changes, &mut answers).await?;
        }
        let is_canary = order.step_size().is_some();
        for (change, answer) in changes.iter().zip(&answers) {
            let is_done = is_again && may_be_done(*answer);
            match refusal(*answer).filter(|_| !is_done) {
                Some(reason) => {
                    order.failed += 1;
                    *order.refused.entry(reason.to_owned()).or_default() += 1;
                }
                None => {
                    order.done += 1;
                    if is_canary {
                        order.watched.push(change.job.to_string());
                    }
                }
            }
        }
        if self.events.is_open() {
            let told = order.told(&answers);
            self.events.tell(told.iter().map(|(job, kind, to)| (*job, kind, None, *to)));
        }
        order.pending.clear();
        Ok(match order.rate {
            Some(rate) => Next::Wait(rate.time_of(changes.len())),
            None => Next::SaveLater,
        })
    }

    /// Changes jobs that were modified since they were read, if they are still selected: an order to cancel all waiting jobs
    /// includes a job that started to run, but not one that died.
    async fn follow(
        &self,
        id: JobId,
        order: &Document,
        changes: &[Change],
        answers: &mut [Changed],
    ) -> Result<(), StoreError> {
        for _ in 0..FOLLOW_MAX {
            let is_stale = |place: &usize| matches!(answers[*place], Changed::VersionChanged(_));
            let stale: Vec<usize> = (0..changes.len()).filter(is_stale).collect();
            if stale.is_empty() {
                return Ok(());
            }
            let jobs = self.find(stale.iter().map(|place| changes[*place].job).collect()).await?;
            let mut places = Vec::new();
            let mut again = Vec::new();
            for place in stale {
                let change = &changes[place];
                match jobs.get(&change.job) {
                    Some(job) if order.filter.filter.wants(job.state()) => {
                        places.push(place);
                        again.push(Change { if_version: Some(job.version), ..change.clone() });
                    }
                    Some(job) => answers[place] = Changed::WrongState(job.state()),
                    None => answers[place] = Changed::NotFound,
                }
            }
            if again.is_empty() {
                return Ok(());
            }
            let changed = self.store.change(&again, &order.actor(id), self.keep).await?;
            for (place, answer) in places.into_iter().zip(changed) {
                answers[place] = answer;
            }
        }
        Ok(())
    }

    /// Reads the current jobs with one call.
    async fn find(&self, ids: Vec<JobId>) -> Result<HashMap<JobId, Job>, StoreError> {
        let jobs = self.store.find(&ids).await?;
        Ok(jobs.into_iter().map(|job| (job.id, job)).collect())
    }

    /// Checks whether the jobs of the canary step succeed.
    async fn watch(&self, order: &mut Document) -> Result<Next, StoreError> {
        let ids: Vec<JobId> = order.watched.iter().filter_map(|id| id.parse().ok()).collect();
        let mut found = self.find(ids.clone()).await?;
        let jobs: Vec<Option<Job>> = ids.iter().map(|id| found.remove(id)).collect();
        let (step, steps, count) = (order.step + 1, order.canary.len(), jobs.len());
        order.seen = Seen::of(&jobs);
        match canary::judge(&jobs) {
            Health::Well => {
                order.watched.clear();
                order.watched_ms = None;
                order.seen = Seen::default();
                order.step += 1;
                Ok(Next::Step)
            }
            Health::AtWork(_) => {
                let now = self.store.now().await?;
                let since = *order.watched_ms.get_or_insert(now.as_millis());
                let waited = now.since(Timestamp::from_millis(since));
                Ok(Next::Wait((waited / 4).clamp(LOOK_MIN, LOOK_MAX)))
            }
            Health::Failing { failed, example } => {
                let left = order.total.saturating_sub(order.done + order.failed);
                Ok(Next::Stop(format!(
                    "step {step} of {steps} of the canary failed: {failed} of its {count} jobs failed \
                     again ({example}); jobs redriven in total: {}, not changed: {left}",
                    order.done
                )))
            }
        }
    }
}

impl Runner for Operator {
    fn run(&self, context: JobContext) -> Reporting {
        let work = self.clone().work(context);
        Box::pin(async move { work.await.map_or_else(|report| report, |()| Report::Done) })
    }
}

async fn save(context: &JobContext, order: &Document) -> Result<(), CheckpointError> {
    context.checkpoint_raw(order.encode()).await
}

/// Returns whether a result is the one of a repeated change.
fn may_be_done(answer: Changed) -> bool {
    matches!(answer, Changed::WrongState(_) | Changed::VersionChanged(_) | Changed::NotFound)
}

/// Returns why a job was not changed, as named in the API; `None` if it was changed.
fn refusal(answer: Changed) -> Option<&'static str> {
    match answer {
        Changed::Applied { .. } | Changed::Wanted { .. } | Changed::Unchanged { .. } => None,
        Changed::WrongState(_) => Some("wrong_state"),
        Changed::VersionChanged(_) => Some("version_changed"),
        Changed::NeedsDeadline => Some("deadline_passed"),
        Changed::TooLarge { .. } => Some("too_large"),
        Changed::Reserved => Some("reserved"),
        Changed::NotFound => Some("not_found"),
    }
}
