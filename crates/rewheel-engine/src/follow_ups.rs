//! Jobs that an attempt submits: they are stored together with its result.

use crate::ceilings::OverCeiling;
use crate::runner::{JobContext, JobKind};
use crate::shared::{Shared, lock};
use crate::submit::{self, SubmitError, duplicates, payload_limit};
use rewheel::Backoff;
use rewheel_core::store::{Inserted, Refusal};
use rewheel_core::{
    Decision, Format, Holder, Job, JobId, KindName, Limits, NewJob, OnDuplicate, Report, State,
    UniqueUntil,
};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A job for [`JobContext::submit`] with a key, a delay or other settings. The new job gets the tenant of the job that submits it.
///
/// ```
/// use rewheel::minutes;
/// use rewheel_engine::{FollowUp, JobContext, Report};
///
/// async fn charge(ctx: JobContext) -> Result<(), Report> {
///     ctx.submit(FollowUp::raw("mail", b"{}".to_vec()).key("receipt-17").delay(minutes(5)))?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct FollowUp(Result<NewJob, SubmitError>);

impl FollowUp {
    /// Creates a job of a type of this program.
    pub fn of<T: JobKind>(job: &T) -> FollowUp {
        let payload = job.encode().map_err(|why| submit::field("payload", why));
        FollowUp(payload.and_then(|payload| new(T::NAME, payload)))
    }

    /// Creates a job with a payload of opaque bytes.
    pub fn raw(kind: &str, payload: Vec<u8>) -> FollowUp {
        FollowUp(new(kind, payload))
    }

    /// Sets the deduplication key: if a job of the tenant and kind has this key already, nothing is stored.
    #[must_use]
    pub fn key(self, key: &str) -> FollowUp {
        self.with(|job| submit::set_key(job, key))
    }

    /// Sets until when another job keeps the key, see [`Submit::unique_until`](crate::Submit::unique_until).
    #[must_use]
    pub fn unique_until(self, until: UniqueUntil) -> FollowUp {
        self.with(|job| duplicates::set_unique_until(job, until))
    }

    /// Sets what happens to another job that has the key, see [`Submit::on_duplicate`](crate::Submit::on_duplicate).
    #[must_use]
    pub fn on_duplicate(self, on: OnDuplicate) -> FollowUp {
        self.with(|job| duplicates::set_on_duplicate(job, on))
    }

    /// Runs the job when no submit with its key has arrived for a while, see [`Submit::debounce`](crate::Submit::debounce).
    #[must_use]
    pub fn debounce(self, delay: Duration) -> FollowUp {
        self.with(|job| duplicates::set_debounce(job, delay, None))
    }

    /// As [`debounce`](FollowUp::debounce), where submits postpone the job at most until `max` after it was created.
    #[must_use]
    pub fn debounce_up_to(self, delay: Duration, max: Duration) -> FollowUp {
        self.with(|job| duplicates::set_debounce(job, delay, Some(max)))
    }

    /// Sets the shard key: jobs with the same key share a shard.
    #[must_use]
    pub fn shard_key(self, key: &str) -> FollowUp {
        self.with(|job| submit::set_shard_key(job, key))
    }

    /// Sets the group: jobs of one kind and tenant with the same group key run one at a time, in the order in which they were accepted.
    #[must_use]
    pub fn group_key(self, key: &str) -> FollowUp {
        self.with(|job| submit::set_group_key(job, key))
    }

    /// Sets the priority: 9 runs first, the default is 5.
    #[must_use]
    pub fn priority(self, priority: u8) -> FollowUp {
        self.with(|job| submit::set_priority(job, priority))
    }

    /// Delays the first attempt, counted from the result of the attempt that submits it.
    #[must_use]
    pub fn delay(self, delay: Duration) -> FollowUp {
        self.with(|job| submit::set_delay(job, delay))
    }

    /// Gives up after this time, counted from the result of the attempt that submits it.
    #[must_use]
    pub fn deadline_in(self, left: Duration) -> FollowUp {
        self.with(|job| submit::set_deadline_in(job, left))
    }

    /// Sets the maximum number of attempts.
    #[must_use]
    pub fn attempts_max(self, attempts_max: u32) -> FollowUp {
        self.with(|job| submit::set_attempts_max(job, attempts_max))
    }

    /// Sets the timeout of one attempt.
    #[must_use]
    pub fn attempt_timeout(self, timeout: Duration) -> FollowUp {
        self.with(|job| submit::set_attempt_timeout(job, timeout))
    }

    /// Sets the delays between attempts.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> FollowUp {
        self.with(|job| {
            job.backoff = Some(backoff);
            Ok(())
        })
    }

    pub(crate) fn into_job(self) -> Result<NewJob, SubmitError> {
        self.0
    }

    fn with(self, set: impl FnOnce(&mut NewJob) -> Result<(), SubmitError>) -> FollowUp {
        FollowUp(self.0.and_then(|mut job| set(&mut job).map(|()| job)))
    }
}

/// Creates a job whose id is set when it is submitted.
fn new(kind: &str, payload: Vec<u8>) -> Result<NewJob, SubmitError> {
    Ok(NewJob::new(JobId::from_bytes([0; 16]), submit::kind(kind)?, payload))
}

/// A job for [`JobContext::submit`]: a job of a type of this program, or a [`FollowUp`] with settings.
pub trait IntoFollowUp {
    /// Makes the job.
    fn into_follow_up(self) -> FollowUp;
}

impl<T: JobKind> IntoFollowUp for T {
    fn into_follow_up(self) -> FollowUp {
        FollowUp::of(&self)
    }
}

impl IntoFollowUp for FollowUp {
    fn into_follow_up(self) -> FollowUp {
        self
    }
}

/// The jobs that one attempt has submitted so far.
pub(crate) struct FollowUps {
    shared: Arc<Shared>,
    /// `None` after the attempt.
    jobs: Mutex<Option<Vec<NewJob>>>,
    /// A new payload of the job itself.
    payload: Mutex<Option<Vec<u8>>>,
}

impl fmt::Debug for FollowUps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FollowUps").field(&self.jobs).finish()
    }
}

impl FollowUps {
    pub(crate) fn new(shared: &Arc<Shared>) -> FollowUps {
        let jobs = Mutex::new(Some(Vec::new()));
        FollowUps { shared: Arc::clone(shared), jobs, payload: Mutex::default() }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Replaces the payload of the job together with the result of its attempt.
    pub(crate) fn replace_payload(&self, payload: Vec<u8>) {
        *lock(&self.payload) = Some(payload);
    }

    /// Ends the attempt. Returns the jobs and the payload if its result carries them: it is done, or goes on later. An attempt that
    /// failed, or was cut, may have submitted anything, and the next one submits it again.
    pub(crate) fn end(
        &self,
        report: &Report,
        decision: &Decision,
    ) -> (Vec<NewJob>, Option<Vec<u8>>) {
        let jobs = lock(&self.jobs).take().unwrap_or_default();
        let payload = lock(&self.payload).take();
        if carries(report, decision) { (jobs, payload) } else { (Vec::new(), None) }
    }

    pub(crate) fn add(&self, mut job: NewJob, parent: &Job) -> Result<JobId, SubmitError> {
        job.id = self.shared.new_id();
        self.shared.check_follow_up(&job)?;
        let job = self.shared.route_follow_up(job, parent);
        let id = job.id;
        let mut jobs = lock(&self.jobs);
        let Some(jobs) = jobs.as_mut() else {
            let why = "came too late: the attempt has ended".to_owned();
            return Err(submit::field("follow_ups", why));
        };
        check_size(jobs.iter().chain([&job]))?;
        jobs.push(job);
        Ok(id)
    }
}

/// Returns whether a result carries the jobs that its attempt submitted.
pub(crate) fn carries(report: &Report, decision: &Decision) -> bool {
    matches!(report, Report::Done | Report::Snooze(_))
        && matches!(decision, Decision::Succeed | Decision::Snooze { .. })
}

/// Checks the jobs of one attempt together.
pub(crate) fn check_size<'a>(
    jobs: impl Iterator<Item = &'a NewJob> + Clone,
) -> Result<(), SubmitError> {
    let (count_max, bytes_max) = (Limits::FOLLOW_UPS_MAX, Limits::FOLLOW_UPS_BYTES_MAX);
    let wrong = |why| Err(submit::field("follow_ups", why));
    if jobs.clone().count() > count_max {
        return wrong(format!(
            "must be {count_max} or fewer: submit one job that submits the others"
        ));
    }
    let bytes: usize = jobs.map(|job| job.payload.len()).sum();
    if bytes > bytes_max {
        return wrong(format!("have {bytes} bytes of payloads together; the limit is {bytes_max}"));
    }
    Ok(())
}

impl JobContext {
    /// Submits a job together with the result of this attempt. If the attempt succeeds or snoozes, the store adds the new job in
    /// the same transaction as the result. If the attempt fails, panics or times out, or if another node has taken over the job,
    /// nothing is submitted. Nothing is stored before the attempt ends. One attempt may submit at most 16 jobs, with payloads of
    /// at most 256 KiB together.
    ///
    /// The new job gets the tenant of this job, and this job becomes its parent. Returns the id of the new job. If another
    /// job has the same key and payload when the attempt ends, the new job is not stored. If another job has the same key
    /// with another payload, the new job becomes a dead letter.
    ///
    /// # Errors
    /// Fails if a setting is invalid, this node does not know the kind, or the attempt submits too many jobs. Handlers can return
    /// the error with `?`.
    ///
    /// ```
    /// use rewheel_engine::{Engine, JobContext, JobKind, Report};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Charge { order: u64 }
    /// impl JobKind for Charge { const NAME: &'static str = "charge"; }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct MailReceipt { order: u64 }
    /// impl JobKind for MailReceipt { const NAME: &'static str = "mail-receipt"; }
    ///
    /// async fn charge(ctx: JobContext, job: Charge) -> Result<(), Report> {
    ///     ctx.submit(MailReceipt { order: job.order })?;
    ///     Ok(())
    /// }
    /// # async fn mail(_: JobContext, _: MailReceipt) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use rewheel_engine::store::{Filter, PageRequest};
    /// # let store = rewheel_stores::connect("memory://").await?;
    /// let engine = Engine::builder(store.clone()).handler(charge).handler(mail).start().await?;
    /// let job = engine.submit(Charge { order: 17 }).await?;
    /// # let filter = Filter { parent: Some(job.id), ..Filter::default() };
    /// # while store.list(&filter, &PageRequest::first(1)).await?.items.is_empty() {
    /// #     tokio::task::yield_now().await;
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(&self, job: impl IntoFollowUp) -> Result<JobId, SubmitError> {
        self.follow_ups().add(job.into_follow_up().0?, self.job())
    }
}

impl Shared {
    /// Checks a job that an attempt of another job submits, as far as it can be checked before it is stored.
    pub(crate) fn check_follow_up(&self, job: &NewJob) -> Result<(), SubmitError> {
        if let Some(why) = payload_limit::refusal(job, self.settings.payload_bytes_max) {
            return Err(SubmitError::Refused(why));
        }
        let Some(kind) = self.kind(&job.kind) else {
            return Err(SubmitError::Refused(Refusal::UnknownKind));
        };
        submit::check_backoff(self, job)?;
        duplicates::check(job)?;
        let over = |over: OverCeiling| submit::field(over.field, over.why);
        kind.ceilings.check(job).map_err(over)?;
        // The store gives it a parent.
        let format = job.format().max(Format::FOLLOW_UPS);
        match self.leases.oldest_holder().filter(|oldest| oldest.format < format) {
            Some(OldestHolder { name, .. }) => {
                Err(SubmitError::Refused(Refusal::HolderTooOld { holder: name }))
            }
            None => Ok(()),
        }
    }

    /// Sets what follows from the parent of a job: the store sets its tenant too, but the shard depends on it. The engine's own jobs
    /// submit jobs of any tenant.
    pub(crate) fn route_follow_up(&self, job: NewJob, parent: &Job) -> NewJob {
        let lane = &parent.lane;
        let tenant = if lane.kind.is_reserved() { &job.tenant } else { &lane.tenant };
        let job = NewJob { tenant: tenant.clone(), parent: Some(parent.id), ..job };
        let routed = self.intake.shards.route(std::slice::from_ref(&job));
        routed.and_then(|mut routed| routed.pop()).unwrap_or(job)
    }

    /// Reports jobs that settles submitted, as they are now: some may be duplicates, some dead letters.
    pub(crate) async fn tell_of_follow_ups(&self, jobs: &[NewJob]) {
        for part in jobs.chunks(Limits::BATCH_MAX) {
            let ids: Vec<JobId> = part.iter().map(|job| job.id).collect();
            let stored = match self.store.find(&ids).await {
                Ok(stored) => stored,
                Err(error) => {
                    tracing::debug!(%error, "failed to read the jobs that an attempt submitted; no events are sent for these jobs");
                    continue;
                }
            };
            for job in &stored {
                let kind: &KindName = &job.lane.kind;
                let created = Inserted::Created { due: job.due, leased: None };
                self.reports.meters.kind(kind).submitted(job.id, &created);
                self.reports.events.tell([(job.id, kind, None, job.state())]);
                if job.state() == State::Dead {
                    self.note_dead([job.id]);
                }
            }
        }
    }
}

/// A living holder with the oldest release.
#[derive(Clone, Debug)]
pub(crate) struct OldestHolder {
    pub(crate) name: String,
    pub(crate) format: Format,
}

/// Returns the living holder with the oldest release.
pub(crate) fn oldest(holders: &[Holder]) -> Option<OldestHolder> {
    let living = holders.iter().filter(|holder| holder.died.is_none());
    let oldest = living.min_by_key(|holder| holder.format)?;
    Some(OldestHolder { name: oldest.name.clone(), format: oldest.format })
}
