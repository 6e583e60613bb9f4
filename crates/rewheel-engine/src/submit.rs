//! Submits jobs: one typed job, or a batch.

pub(crate) mod duplicates;
mod many;
mod id_time;
mod receipt;
pub(crate) mod payload_limit;
mod setters;
mod spill;

pub use self::many::{IntoSubmit, SubmitMany};
pub use self::receipt::Receipt;
pub(crate) use self::setters::{
    set_attempt_timeout, set_attempts_max, set_deadline_in, set_delay, set_group_key, set_key,
    set_priority, set_shard_key,
};

pub(crate) use self::id_time::IdTime;

use crate::admission::Ticket;
use crate::engine::Engine;
use crate::kinds::KindEntry;
use crate::runner::JobKind;
use crate::shared::{Command, Shared};
use crate::submit_batching;
use crate::trace;
use rewheel::{Backoff, Category, Class, Classify, FailedCall, Retry, Series, Step, Verdict};
use rewheel_core::store::{Direct, IfRefused, Insert, Inserted, Refusal, Sent, StoreError};
use rewheel_core::{
    Fence, Job, JobId, KindName, NameError, NewJob, OnDuplicate, State, Status, Tenant, Timestamp,
    UniqueUntil, When,
};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Error: a job was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// A field is invalid.
    #[error("{field} {why}")]
    Field {
        /// The field.
        field: &'static str,
        /// The reason.
        why: String,
    },
    /// The store refuses the job.
    #[error("the job was not accepted: {0}")]
    Refused(#[from] Refusal),
    /// The store failed, so it is unknown whether the job is stored. Submit the job again with the same key.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine was already shut down: nothing was stored.
    #[error("the engine has shut down and accepts no jobs: submit to a running engine")]
    ShutDown,
}

impl Classify for SubmitError {
    fn classify(&self) -> Class {
        match self {
            // The kind may be created, the old node upgraded, the tenant may get room.
            SubmitError::Refused(
                Refusal::UnknownKind | Refusal::HolderTooOld { .. } | Refusal::TenantFull { .. },
            )
            | SubmitError::ShutDown => Class::retry(Category::Transient),
            SubmitError::Field { .. }
            | SubmitError::Refused(
                Refusal::KeyReused { .. }
                | Refusal::DeadlineTooEarly
                | Refusal::TooLarge { .. }
                | Refusal::AbovePayloadLimit { .. },
            ) => Class::stop(Category::Rejected),
            SubmitError::Store(error) => error.classify(),
        }
    }
}

/// A job to submit. Await it.
#[must_use = "a submit does nothing unless you await it"]
#[derive(Debug)]
pub struct Submit<'a> {
    engine: &'a Engine,
    job: Result<NewJob, SubmitError>,
}

impl<'a> Submit<'a> {
    pub(crate) fn typed<T: JobKind>(engine: &'a Engine, job: &T) -> Submit<'a> {
        let payload = job.encode().map_err(|why| field("payload", why));
        let new = payload.and_then(|payload| new_job(engine, T::NAME, payload));
        Submit { engine, job: new }
    }

    pub(crate) fn raw(engine: &'a Engine, kind: &str, payload: Vec<u8>) -> Submit<'a> {
        Submit { engine, job: new_job(engine, kind, payload) }
    }

    /// Sets the deduplication key: only one job per tenant and kind has this key, so submitting it again has no effect.
    pub fn key(self, key: &str) -> Submit<'a> {
        self.with(|job| set_key(job, key))
    }

    /// Sets until when another job keeps the key. With [`UniqueUntil::Claimed`], this job is stored and takes the key if the other
    /// job was claimed or has ended.
    pub fn unique_until(self, until: UniqueUntil) -> Submit<'a> {
        self.with(|job| duplicates::set_unique_until(job, until))
    }

    /// Sets what happens to another job that has the key and waits. With [`OnDuplicate::Replace`], it runs what this submit gives.
    pub fn on_duplicate(self, on: OnDuplicate) -> Submit<'a> {
        self.with(|job| duplicates::set_on_duplicate(job, on))
    }

    /// Runs the job when no submit with its key has arrived for `delay`, with what the last one gave; submits without a pause
    /// postpone it for ten delays at most.
    ///
    /// ```
    /// # use rewheel::{millis, seconds};
    /// # use rewheel_engine::{Engine, Report};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .raw_handler("index", |_| async { Report::Done })
    ///     .start()
    ///     .await?;
    /// let index = |page: &str| engine.submit_raw("index", page.as_bytes().to_vec()).key("page-7");
    /// let first = index("draft").debounce(seconds(2)).await?;
    /// let second = index("final").debounce(seconds(2)).await?;
    /// assert_eq!((second.id, second.replaced), (first.id, true));
    /// # Ok(())
    /// # }
    /// ```
    pub fn debounce(self, delay: Duration) -> Submit<'a> {
        self.with(|job| duplicates::set_debounce(job, delay, None))
    }

    /// As [`debounce`](Submit::debounce), where submits postpone the job at most until `max` after it was created.
    pub fn debounce_up_to(self, delay: Duration, max: Duration) -> Submit<'a> {
        self.with(|job| duplicates::set_debounce(job, delay, Some(max)))
    }

    /// Sets the tenant.
    pub fn tenant(self, tenant: &str) -> Submit<'a> {
        self.with(|job| {
            job.tenant = Some(Tenant::parse(tenant).map_err(|why| name("tenant", why))?);
            Ok(())
        })
    }

    /// Sets the shard key: jobs with the same key share a shard.
    pub fn shard_key(self, key: &str) -> Submit<'a> {
        self.with(|job| set_shard_key(job, key))
    }

    /// Sets the group: jobs of one kind and tenant with the same group key run one at a time, in the order in which they were accepted.
    pub fn group_key(self, key: &str) -> Submit<'a> {
        self.with(|job| set_group_key(job, key))
    }

    /// Sets the priority: 9 runs first, the default is 5.
    pub fn priority(self, priority: u8) -> Submit<'a> {
        self.with(|job| set_priority(job, priority))
    }

    /// Delays the first attempt.
    pub fn delay(self, delay: Duration) -> Submit<'a> {
        self.with(|job| set_delay(job, delay))
    }

    /// Gives up after this time.
    pub fn deadline_in(self, left: Duration) -> Submit<'a> {
        self.with(|job| set_deadline_in(job, left))
    }

    /// Sets the maximum number of attempts.
    pub fn attempts_max(self, attempts_max: u32) -> Submit<'a> {
        self.with(|job| set_attempts_max(job, attempts_max))
    }

    /// Sets the timeout of one attempt.
    pub fn attempt_timeout(self, timeout: Duration) -> Submit<'a> {
        self.with(|job| set_attempt_timeout(job, timeout))
    }

    /// Sets the delays between attempts.
    pub fn backoff(self, backoff: Backoff) -> Submit<'a> {
        self.with(|job| {
            job.backoff = Some(backoff);
            Ok(())
        })
    }

    /// Sets the parent span in W3C Trace Context format: attempts link to it, and called services receive it. If `tracing`
    /// spans are exported to OpenTelemetry, the current span is used by default.
    pub fn traceparent(self, traceparent: &str) -> Submit<'a> {
        self.with(|job| {
            if !trace::is_traceparent(traceparent) {
                return Err(field("traceparent", "must be a W3C traceparent".to_owned()));
            }
            job.traceparent = Some(traceparent.to_owned());
            Ok(())
        })
    }

    /// Returns the job instead of storing it, for your own transaction, such as that of the PostgreSQL store's `insert_in`.
    ///
    /// ```
    /// # use rewheel_engine::{Engine, JobKind};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct ChargeCard { order: u64 }
    /// # impl JobKind for ChargeCard { const NAME: &'static str = "charge-card"; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?).start().await?;
    /// let job = engine.submit(ChargeCard { order: 17 }).key("order-17").into_job()?;
    /// assert_eq!(job.payload, br#"{"order":17}"#);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the invalid setting, or refuses a payload above
    /// [`payload_bytes_max`](crate::EngineSettings::payload_bytes_max).
    pub fn into_job(self) -> Result<NewJob, SubmitError> {
        let job = self.job?;
        check(self.engine, &job)?;
        let routed = self.engine.shared().intake.shards.route(std::slice::from_ref(&job));
        Ok(routed.and_then(|mut routed| routed.pop()).unwrap_or(job))
    }

    /// Counts the attempts of a call that was made in process before: the job gets as many fewer than
    /// its kind allows, at least one, and waits first as its kind waits after so many attempts. Its own
    /// attempts are numbered after those.
    fn after_call(self, failed: FailedCall) -> Submit<'a> {
        let shared = self.engine.shared();
        self.with(|job| {
            // Stores count attempts in 32 bits with a sign, and more attempts follow.
            job.attempts_before = failed.attempts.min(1 << 30);
            if let (Some(kind), 1..) = (shared.kind(&job.kind), failed.attempts) {
                let policy = kind.settings.policy();
                let left = policy.attempts_max.saturating_sub(failed.attempts).max(1);
                job.attempts_max = Some(left);
                let retry = Retry::new(policy.backoff).attempts_max(u32::MAX);
                let mut series = Series::starting_at(retry, failed.attempts);
                if let Step::Wait(delay) =
                    series.after(Verdict::Retry, Duration::ZERO, &shared.random)
                {
                    job.due = When::In(delay);
                }
            }
            Ok(())
        })
    }

    fn with(mut self, set: impl FnOnce(&mut NewJob) -> Result<(), SubmitError>) -> Submit<'a> {
        if let Ok(job) = &mut self.job
            && let Err(wrong) = set(job)
        {
            self.job = Err(wrong);
        }
        self
    }

    async fn send(self) -> Result<Receipt, SubmitError> {
        let job = self.job?;
        check(self.engine, &job)?;
        let jobs = [job];
        let answers = self.engine.insert(&Insert::new(&jobs)).await;
        let answers = answers.map_err(|error| store_error(self.engine, error))?;
        receipt(self.engine, jobs[0].id, answers.into_iter().next())
    }
}

/// Checks what the store does not: the engine's limit for payloads, and what the kind allows a job to ask for.
fn check(engine: &Engine, job: &NewJob) -> Result<(), SubmitError> {
    if let Some(why) = payload_limit::refusal(job, engine.settings().payload_bytes_max) {
        return Err(SubmitError::Refused(why));
    }
    check_backoff(engine.shared(), job)?;
    duplicates::check(job)?;
    match engine.shared().kind(&job.kind) {
        Some(kind) => kind.ceilings.check(job).map_err(|over| field(over.field, over.why)),
        None => Ok(()),
    }
}

/// Checks that this engine knows the custom backoff of a job.
pub(crate) fn check_backoff(shared: &Shared, job: &NewJob) -> Result<(), SubmitError> {
    let custom = job.backoff.and_then(|backoff| backoff.custom_name());
    match custom.filter(|name| shared.kinds.backoffs.get(name).is_none()) {
        Some(name) => {
            let why = format!("`{name}` is not registered: use EngineBuilder::backoffs");
            Err(field("backoff", why))
        }
        None => Ok(()),
    }
}

/// Reads what the store answered for a new job.
fn receipt(engine: &Engine, id: JobId, answer: Option<Inserted>) -> Result<Receipt, SubmitError> {
    let receipt = |job| Receipt {
        id: job,
        duplicate: job != id,
        replaced: false,
        engine: engine.downgrade(),
    };
    match answer {
        Some(Inserted::Created { .. }) => Ok(receipt(id)),
        Some(Inserted::Duplicate { job, .. }) => Ok(receipt(job)),
        Some(Inserted::Replaced { job, .. }) => {
            Ok(Receipt { duplicate: true, replaced: true, ..receipt(job) })
        }
        Some(Inserted::Refused(why)) => Err(SubmitError::Refused(why)),
        Some(Inserted::LeftOut) | None => Err(no_result().into()),
    }
}

/// A store must answer for each job.
pub(crate) fn no_result() -> StoreError {
    let what = "bug in the store: it returned no result for a new job".to_owned();
    StoreError::Broken { what, source: None }
}

fn store_error(engine: &Engine, error: StoreError) -> SubmitError {
    let is_shut_down = matches!(error, StoreError::Closed) && engine.has_shut_down();
    if is_shut_down { SubmitError::ShutDown } else { SubmitError::Store(error) }
}

impl<'a> IntoFuture for Submit<'a> {
    type Output = Result<Receipt, SubmitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

fn new_job(engine: &Engine, kind: &str, payload: Vec<u8>) -> Result<NewJob, SubmitError> {
    Ok(NewJob::new(engine.new_id(), self::kind(kind)?, payload))
}

pub(crate) fn kind(kind: &str) -> Result<KindName, SubmitError> {
    let kind = KindName::parse(kind).map_err(|why| name("kind", why))?;
    if kind.is_reserved() {
        return Err(field("kind", format!("`{kind}` is reserved for the engine")));
    }
    Ok(kind)
}

pub(crate) fn field(field: &'static str, why: String) -> SubmitError {
    SubmitError::Field { field, why }
}

fn name(of: &'static str, why: NameError) -> SubmitError {
    field(of, why.to_string())
}

/// Inserts jobs; a single job goes directly into a free slot if there is one.
pub(crate) async fn insert(
    shared: &Arc<Shared>,
    insert: &Insert<'_>,
) -> Result<Vec<Inserted>, StoreError> {
    let direct = direct(shared, insert);
    let call = direct.is_some().then(|| shared.leases.calls.begin());
    let answers = match insert.jobs {
        [job] if direct.is_none() && is_simple(insert) => {
            submit_batching::insert(shared, job).await?
        }
        _ => {
            let direct = direct.as_ref().map(|(direct, _)| *direct);
            shared.store.insert(&Insert { direct, ..insert.clone() }).await?
        }
    };
    let stored = insert.jobs.iter().zip(&answers).filter_map(|(job, answer)| match answer {
        Inserted::Created { leased: None, .. } => Some((job.id, &job.kind, None, State::Scheduled)),
        Inserted::Created { leased: Some(_), .. } => Some((job.id, &job.kind, None, State::Leased)),
        Inserted::Duplicate { .. }
        | Inserted::Replaced { .. }
        | Inserted::Refused(_)
        | Inserted::LeftOut => None,
    });
    shared.reports.events.tell(stored);
    if let (Some((direct, ticket)), [new], [answer]) = (direct, insert.jobs, answers.as_slice()) {
        match leased_to(direct, new, answer) {
            Some((job, now)) => {
                let deadline_in = Shared::left(job.deadline, now);
                let waiting = shared.waiting(job, direct.holder, Duration::ZERO, deadline_in);
                shared.leases.hold(waiting.lease());
                let _ = shared.signals.to_dispatch.send(Command::Direct(Box::new(waiting), ticket));
            }
            // A duplicate, or a job behind others: it starts nothing here.
            None => {
                ticket.unused();
                let _ = shared.signals.to_dispatch.send(Command::Place);
            }
        }
    }
    if let Some(call) = call {
        call.end();
    }
    Ok(answers)
}

/// Counts the results of jobs. Most jobs of a batch have the same kind as the previous one.
pub(crate) fn count(shared: &Shared, jobs: &[NewJob], answers: &[Inserted]) {
    let mut last: Option<(&KindName, Option<Arc<KindEntry>>)> = None;
    for (job, answer) in jobs.iter().zip(answers) {
        let kind = match last.take() {
            Some((name, kind)) if *name == job.kind => kind,
            // Not for kinds that do not exist: callers could make up any number of them.
            Some(_) | None => shared.kind(&job.kind),
        };
        kind.iter().for_each(|kind| kind.meters.submitted(job.id, answer));
        last = Some((&job.kind, kind));
    }
}

/// Returns the job if it was leased by its own insert, and the store's time then. A duplicate that is sent again may have been
/// leased by the insert whose response was lost, or by a later claim: the search for lost leases, which has started by now,
/// decides that.
fn leased_to(direct: Direct, new: &NewJob, answer: &Inserted) -> Option<(Job, Timestamp)> {
    match answer {
        Inserted::Created { due, leased: Some(fence) } => {
            Some((leased_job(new, direct, *due, *fence), *due))
        }
        Inserted::Created { leased: None, .. }
        | Inserted::Duplicate { .. }
        | Inserted::Replaced { .. }
        | Inserted::Refused(_)
        | Inserted::LeftOut => None,
    }
}

/// Returns whether the insert has no options.
fn is_simple(insert: &Insert<'_>) -> bool {
    insert.sent == Sent::First
        && insert.if_refused == IfRefused::StoreOthers
        && insert.direct.is_none()
}

/// Takes a slot for a job that could run at once.
fn direct(shared: &Shared, insert: &Insert<'_>) -> Option<(Direct, Box<Ticket>)> {
    let [job] = insert.jobs else { return None };
    let is_now = job.due == When::In(Duration::ZERO);
    if job.group_key.is_some() {
        // Only the store knows whether it may run.
        return None;
    }
    if !is_simple(insert) || !is_now || shared.is_stopping() || shared.is_lease_expired() {
        return None;
    }
    let kind = shared.kind(&job.kind)?;
    let ticket = shared.admission.admit_direct(&job.kind, job.tenant.as_ref())?;
    let direct = Direct {
        holder: shared.holder(),
        attempt_timeout: kind.settings.attempt_timeout,
        grace: shared.settings.overdue_grace,
    };
    Some((direct, Box::new(ticket)))
}

/// Builds the job as it is stored now, without reading it.
pub(crate) fn leased_job(job: &NewJob, direct: Direct, due: Timestamp, fence: Fence) -> Job {
    let timeout = job.attempt_timeout.unwrap_or(direct.attempt_timeout);
    let overdue = due.plus(timeout).plus(direct.grace);
    let status = Status::Leased { holder: direct.holder, overdue, wanted: None };
    Job { due, status, fence, ..job.to_job(due) }
}
