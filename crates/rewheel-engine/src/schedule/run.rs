//! Fires a schedule: submits the job of an instant, and snoozes until the next one.

use super::document::Document;
use super::plan::{Plan, plan};
use super::{Overlap, Schedule};
use crate::meters::MISSED;
use crate::notify::{Event, Notice};
use crate::runner::{JobContext, Reporting, Runner};
use crate::shared::Shared;
use rewheel::{Category, Verdict};
use rewheel_core::store::StoreError;
use rewheel_core::{Failure, JobId, NewJob, Report, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs schedules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduler;

impl Runner for Scheduler {
    fn run(&self, context: JobContext) -> Reporting {
        Box::pin(async move { fire(context).await.unwrap_or_else(|report| report) })
    }
}

/// Fires what is due. The new payload, the job and the snooze are one settle: either all of them exist, or none.
async fn fire(context: JobContext) -> Result<Report, Report> {
    let unreadable = |why: String| {
        let why = format!("the stored schedule is not readable: {why}");
        Report::Dead(Failure::new(Category::BadPayload, None, &why))
    };
    let mut document = Document::decode(context.payload()).map_err(unreadable)?;
    let schedule = document.schedule().map_err(unreadable)?;
    let shared = Arc::clone(context.follow_ups().shared());
    let now = shared.store.now().await?;
    let plan = plan(&schedule.timing, schedule.catch_up, document.next(), now);
    let Some(Plan { fire, missed, next }) = plan else {
        return Ok(Report::Dead(Failure::new(
            Category::BadPayload,
            None,
            "the schedule has no further instant",
        )));
    };
    if let Some(instant) = fire {
        if schedule.overlap == Overlap::Skip && is_last_live(&shared, &document).await? {
            document.skipped = document.skipped.saturating_add(1);
            tell(&shared, &context, &schedule, (Lost::Overlap, 1, instant));
        } else {
            let job = submit(&context, &schedule, instant)?;
            document.note_fired(instant, job);
        }
    }
    if missed > 0 {
        document.missed = document.missed.saturating_add(missed);
        tell(&shared, &context, &schedule, (Lost::Late, missed, now));
    }
    document.next_ms = next.as_millis();
    context.follow_ups().replace_payload(document.encode());
    let name = name(&context);
    Ok(Report::Snooze(next.plus(schedule.timing.spread(&name)).since(now)))
}

/// Returns whether the job of the latest instant that submitted one has not ended. The cost does not depend on how many jobs the schedule
/// has submitted.
async fn is_last_live(shared: &Shared, document: &Document) -> Result<bool, StoreError> {
    let Some(last) = document.last() else { return Ok(false) };
    Ok(shared.store.ended(&[last.job]).await?.is_empty())
}

/// Submits the job of an instant together with the settle. What cannot be submitted now is tried again: its kind may come back.
fn submit(context: &JobContext, schedule: &Schedule, instant: Timestamp) -> Result<JobId, Report> {
    let job = NewJob { instant: Some(instant), ..schedule.job.clone() };
    context.follow_ups().add(job, context.job()).map_err(|error| {
        let why = format!("the job of this instant cannot be submitted: {error}");
        let failure = Failure::new(Category::Unknown, Some("schedule_job"), &why);
        Report::AttemptFailed { verdict: Verdict::Retry, failure }
    })
}

/// Why an instant submits no job, in the order of the metric.
#[derive(Clone, Copy)]
enum Lost {
    /// No engine could fire it in time.
    Late,
    /// A job of an earlier instant has not ended.
    Overlap,
}

/// Counts instants that submit no job, and notifies operators. This happens before the settle, which may be lost: then another attempt
/// reports the same instants again. The counters in the schedule are exact.
fn tell(
    shared: &Shared,
    context: &JobContext,
    schedule: &Schedule,
    (lost, count, at): (Lost, u64, Timestamp),
) {
    let (name, job, kind) = (name(context), context.id(), &schedule.job.kind);
    let (reason, why) = match lost {
        Lost::Late => (MISSED[0], "no node could submit the job of this instant in time"),
        Lost::Overlap => (MISSED[1], "a job of an earlier instant has not ended"),
    };
    let meter = &shared.reports.meters.kind(kind).missed[lost as usize];
    meter.fetch_add(count, Ordering::Relaxed);
    let counted = if count == 1 { "1 instant".to_owned() } else { format!("{count} instants") };
    tracing::warn!(schedule = name, instants = count, reason, "schedule submitted no job: {why}");
    shared.notify(|| {
        let text = format!("schedule {name} submitted no job for {counted}: {why}");
        let notice = Notice {
            job: Some(job),
            kind: Some(kind.clone()),
            tenant: schedule.job.tenant.clone(),
            reason: Some(reason.into()),
            ..Notice::new(Event::ScheduleMissed, at, text)
        };
        notice.with("schedule", &name).with("instants", count)
    });
}

fn name(context: &JobContext) -> String {
    context.job().key.as_ref().map(ToString::to_string).unwrap_or_default()
}
