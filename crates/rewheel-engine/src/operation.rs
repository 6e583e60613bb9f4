//! Bulk operations: change many jobs. An operation is itself a job, so another node continues it if its node dies.

mod selection;
mod document;
mod canary;
mod run;

pub use self::selection::Selection;

pub(crate) use self::run::Operator;

use self::document::Document;
use crate::engine::Engine;
use crate::own_jobs;
use crate::rate::Rate;
use crate::settings::KindSettings;
use crate::submit::{self, SubmitError};
use rewheel::Backoff;
use rewheel_core::store::{
    Change, ChangeVerb, Count, Cursor, Filter, Insert, Inserted, Page, PageRequest, StoreError,
    StoreResult,
};
use rewheel_core::{Actor, Job, JobId, KindName, NewJob, Priority, State, Tenant, Timestamp, When};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The kind of operations. Names with this prefix are reserved for the engine.
pub(crate) const KIND: &str = "rewheel.operation";

/// Maximum number of jobs in a canary step: all of them are watched.
const STEP_MAX: u32 = 1_000;

/// Maximum number of steps of a canary.
const STEPS_MAX: usize = 10;

/// Maximum number of operations that are read for one page of a tenant's operations: each is read separately.
const LOOKED_AT_MAX: usize = 200;

/// The change that a bulk operation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkVerb {
    /// Cancels the jobs.
    Cancel,
    /// Pauses the jobs.
    Pause,
    /// Resumes the jobs.
    Resume,
    /// Runs the jobs now.
    Retry,
    /// Redrives dead letters.
    Redrive,
}

impl BulkVerb {
    /// Every verb.
    pub const ALL: [BulkVerb; 5] =
        [BulkVerb::Cancel, BulkVerb::Pause, BulkVerb::Resume, BulkVerb::Retry, BulkVerb::Redrive];

    /// Returns its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            BulkVerb::Cancel => "cancel",
            BulkVerb::Pause => "pause",
            BulkVerb::Resume => "resume",
            BulkVerb::Retry => "retry",
            BulkVerb::Redrive => "redrive",
        }
    }

    /// Returns the states of the affected jobs if the filter names none. Dead letters are cancelled or retried only if the filter
    /// contains the state `dead`.
    pub const fn states(self) -> &'static [State] {
        match self {
            BulkVerb::Cancel => &[State::Scheduled, State::Leased, State::Paused],
            BulkVerb::Pause => &[State::Scheduled, State::Leased],
            BulkVerb::Resume => &[State::Paused],
            BulkVerb::Retry => &[State::Scheduled],
            BulkVerb::Redrive => &[State::Dead],
        }
    }

    fn what(self, deadline: Option<When>) -> ChangeVerb {
        match self {
            BulkVerb::Cancel => ChangeVerb::Cancel,
            BulkVerb::Pause => ChangeVerb::Pause,
            BulkVerb::Resume => ChangeVerb::Resume,
            BulkVerb::Retry => ChangeVerb::Retry,
            BulkVerb::Redrive => ChangeVerb::Redrive { deadline },
        }
    }
}

impl fmt::Display for BulkVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BulkVerb {
    type Err = String;

    fn from_str(text: &str) -> Result<BulkVerb, String> {
        let found = BulkVerb::ALL.into_iter().find(|verb| verb.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is not cancel, pause, resume, retry or redrive"))
    }
}

/// An order to change many jobs.
///
/// ```
/// # use rewheel_engine::{Actor, KindName, Report};
/// # use rewheel_engine::store::Filter;
/// # use rewheel_engine::Engine;
/// use rewheel_engine::{Bulk, BulkVerb, Selection};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
/// #     .raw_handler("charge-card", |_| async { Report::Done }).start().await?;
/// let dead = Filter { kinds: vec![KindName::parse("charge-card")?], ..Filter::default() };
/// let redrive = Bulk::new(BulkVerb::Redrive, Selection::from(dead))
///     .canary(vec![1, 10, 100])
///     .rate("100/s".parse()?);
/// println!("{:?} jobs would be redriven", engine.preview(&redrive).await?.count);
///
/// let operation = engine.operate(&redrive, &Actor::new("ops")).await?;
/// let progress = engine.operation(operation.id).await?;
/// # assert!(progress.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bulk {
    /// The change.
    pub verb: BulkVerb,
    /// The affected jobs.
    pub selection: Selection,
    /// Confirms a selection that matches every job. Without it such an order is refused.
    pub all: bool,
    /// Maximum rate. Without it, the operation is as fast as the store allows.
    pub rate: Option<Rate>,
    /// Sizes of the canary steps of a redrive. The redrive starts a step when all jobs of the previous step have ended
    /// well. The redrive stops if too many jobs of a step fail again.
    pub canary: Vec<u32>,
    /// A new deadline for redriven dead letters. Required if their old deadline has passed.
    pub deadline: Option<When>,
}

/// Error: an order cannot be executed.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// A field is invalid.
    #[error("{field} {why}")]
    Field {
        /// The field.
        field: &'static str,
        /// The reason.
        why: String,
    },
    /// The operation could not be submitted.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The effect of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Number of jobs.
    pub count: Count,
    /// Some of the jobs, the newest first.
    pub sample: Vec<JobId>,
}

/// Progress of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The job that executes it.
    pub id: JobId,
    /// The change.
    pub verb: BulkVerb,
    /// The state.
    pub state: OperationState,
    /// Number of selected jobs when the operation was started.
    pub total: u64,
    /// Number of changed jobs.
    pub done: u64,
    /// Number of jobs that could not be changed.
    pub failed: u64,
    /// The reasons, with the number of jobs for each.
    pub refused: BTreeMap<String, u64>,
    /// Why the operation ended early.
    pub reason: Option<String>,
    /// The current canary step, counted from 1, and the number of steps; `None` once all steps succeeded.
    pub step: Option<(usize, usize)>,
    /// The steps of its canary, also once they succeeded; `None` without a canary.
    pub canary: Option<Canary>,
    /// The incident of the jobs, if the order names one.
    pub incident: Option<String>,
    /// The tenant of the jobs, if it is limited to one.
    pub tenant: Option<Tenant>,
    /// The author of the order.
    pub by: Actor,
    /// When the operation was started.
    pub created: Timestamp,
    /// When it ended.
    pub finished: Option<Timestamp>,
}

/// The steps of a canary, and the progress of the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Number of jobs of each step. The jobs that are left follow after the last step.
    pub sizes: Vec<u32>,
    /// Jobs of the current step that were redriven.
    pub redriven: usize,
    /// How many of these have ended well.
    pub ok: usize,
    /// How many of these failed again.
    pub failed: usize,
    /// One of the jobs that failed again.
    pub example: Option<JobId>,
}

/// State of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationState {
    /// Runs.
    Running,
    /// Paused by an operator.
    Paused,
    /// Completed.
    Done,
    /// Stopped by an operator, or by its canary.
    Aborted,
}

impl OperationState {
    /// Returns its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            OperationState::Running => "running",
            OperationState::Paused => "paused",
            OperationState::Done => "done",
            OperationState::Aborted => "aborted",
        }
    }
}

impl Bulk {
    /// Creates an order.
    pub const fn new(verb: BulkVerb, selection: Selection) -> Bulk {
        Bulk { verb, selection, all: false, rate: None, canary: Vec::new(), deadline: None }
    }

    /// Confirms that every job is selected.
    #[must_use]
    pub fn all(mut self) -> Bulk {
        self.all = true;
        self
    }

    /// Sets the maximum rate.
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Bulk {
        self.rate = Some(rate);
        self
    }

    /// Sets the steps of a canary.
    #[must_use]
    pub fn canary(mut self, steps: Vec<u32>) -> Bulk {
        self.canary = steps;
        self
    }

    /// Checks the order. An order that changes every job must set `all`.
    ///
    /// # Errors
    /// Fails with the first invalid field.
    ///
    /// ```
    /// use rewheel_engine::{Bulk, BulkVerb, Selection};
    ///
    /// let everything = Bulk::new(BulkVerb::Cancel, Selection::default());
    /// let why = "filter matches every job: add a condition, or set `all`";
    /// assert_eq!(everything.check().unwrap_err().to_string(), why);
    /// assert!(everything.all().check().is_ok());
    /// ```
    pub fn check(&self) -> Result<(), OperateError> {
        if !self.all && !self.selection.narrows(self.verb) {
            let why = "matches every job: add a condition, or set `all`";
            return Err(OperateError::Field { field: "filter", why: why.to_owned() });
        }
        self.check_fields()
    }

    /// Checks the fields. Sufficient if nothing is changed.
    fn check_fields(&self) -> Result<(), OperateError> {
        let wrong = |field, why: String| Err(OperateError::Field { field, why });
        let verb = self.verb;
        if let Some(kind) = self.selection.filter.kinds.iter().find(|kind| kind.is_reserved()) {
            return wrong("kind", format!("cannot be {kind}: its jobs are internal to the engine"));
        }
        let attempts = self.selection.filter.attempts;
        if attempts.is_some_and(|range| range.least > range.most) {
            return wrong("attempt", "is a range that no number is in".to_owned());
        }
        let incidents = [&self.selection.incident, &self.selection.filter.incident];
        if let [Some(one), Some(other)] = incidents
            && one != other
        {
            return wrong("incident", format!("cannot be {one} and {other}: name one incident"));
        }
        let fits = |state: &State| {
            verb.states().contains(state) || verb.what(None).leads_to(*state).is_some()
        };
        if let Some(state) = self.selection.filter.states.iter().find(|state| !fits(state)) {
            return wrong(
                "state",
                format!("cannot be {state}: {verb} does not apply to jobs in this state"),
            );
        }
        if verb != BulkVerb::Redrive && !self.canary.is_empty() {
            return wrong(
                "canary",
                format!("applies only to redrive: remove it from this {verb} request"),
            );
        }
        if verb != BulkVerb::Redrive && self.deadline.is_some() {
            return wrong(
                "deadline",
                format!("applies only to redrive: remove it from this {verb} request"),
            );
        }
        if self.canary.len() > STEPS_MAX {
            return wrong("canary", format!("must have {STEPS_MAX} steps or fewer"));
        }
        if self.canary.iter().any(|step| !(1..=STEP_MAX).contains(step)) {
            return wrong("canary", format!("must have steps of 1 to {STEP_MAX} jobs"));
        }
        Ok(())
    }
}

/// The settings of operations: they wait for an unavailable store, and for nothing else.
fn settings() -> KindSettings {
    KindSettings {
        attempts_max: 1_000,
        attempt_timeout: Duration::from_secs(60),
        backoff: Backoff::exponential(Duration::from_secs(1)).max(Duration::from_secs(30)),
        takeovers_max: 100,
        ..KindSettings::default()
    }
}

fn kind() -> KindName {
    KindName::parse(KIND).unwrap_or_else(|_| unreachable!("KIND is a valid name"))
}

impl Engine {
    /// Returns the effect of an order without changing anything. The order may select every job.
    ///
    /// # Errors
    /// Fails with the invalid field, or with the error of the store.
    pub async fn preview(&self, order: &Bulk) -> Result<Preview, OperateError> {
        order.check_fields()?;
        let selection = order.selection.of(order.verb, None);
        Ok(selection.preview(&**self.store()).await?)
    }

    /// Starts to change many jobs. The returned operation is durable, and continues on other engines if this engine stops; read its
    /// progress with [`Engine::operation`].
    ///
    /// # Errors
    /// Fails with the invalid field, or with the error of the store.
    pub async fn operate(&self, order: &Bulk, by: &Actor) -> Result<Operation, OperateError> {
        order.check()?;
        let store = self.store();
        let began = store.now().await?;
        // Jobs submitted later are not included anyway, so a time limit in the future does not narrow the selection.
        let mut asked = order.clone();
        asked.selection.filter.created_before.take_if(|before| *before > began);
        asked.check()?;
        let selection = order.selection.of(order.verb, Some(began));
        let total = match selection.preview(&**store).await?.count {
            Count::Exactly(count) | Count::AtLeast(count) => count,
        };
        let document = Document::new(Bulk { selection, ..order.clone() }, by, began, total);
        let kind = kind();
        if self.kind_settings(&kind).is_none() {
            self.put_kind(&kind, &settings(), &Actor::new("engine")).await?;
        }
        let priority = Priority::new(9).unwrap_or_default();
        let parent = Some(own_jobs::OPERATIONS);
        let job =
            NewJob { priority, parent, ..NewJob::new(self.new_id(), kind, document.encode()) };
        match self.insert(&Insert::new(std::slice::from_ref(&job))).await?.pop() {
            Some(
                Inserted::Created { .. } | Inserted::Duplicate { .. } | Inserted::Replaced { .. },
            ) => {}
            Some(Inserted::Refused(why)) => {
                return Err(OperateError::Submit(SubmitError::Refused(why)));
            }
            Some(Inserted::LeftOut) | None => return Err(submit::no_result().into()),
        }
        Ok(document.operation(job.id, OperationState::Running, began))
    }

    /// Returns the progress of an order; `None` if there is no such operation, or it ended long ago.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn operation(&self, id: JobId) -> StoreResult<Option<Operation>> {
        let job = self.store().get(id).await?;
        Ok(job.as_ref().and_then(Operation::of))
    }

    /// Returns operations, the newest first: all, or only those about the jobs of one tenant. A page may have fewer items than
    /// the limit and still have a next page. Its cursor does not contain the id of an operation that is left out.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn operations(
        &self,
        page: &PageRequest,
        tenant: Option<&Tenant>,
    ) -> StoreResult<Page<Operation>> {
        let (kinds, parent) = (vec![kind()], Some(own_jobs::OPERATIONS));
        let filter = Filter { kinds, parent, ..Filter::default() };
        // One more than the maximum shows where the next page begins.
        let looked_at_max = if tenant.is_some() { LOOKED_AT_MAX } else { page.limit };
        let request = PageRequest { limit: looked_at_max.saturating_add(1), ..*page };
        let listed = self.store().list(&filter, &request).await?;
        let (mut items, mut looked_at, mut last) = (Vec::new(), 0, None);
        for part in listed.items.chunks(own_jobs::READ_AT_ONCE) {
            // A list has no payloads, which contain the progress.
            let read = own_jobs::read(&**self.store(), part).await?;
            for (job, read) in part.iter().zip(read) {
                if let Some(last) = last
                    && (items.len() >= page.limit || looked_at >= looked_at_max)
                {
                    return Ok(Page { items, next: Some(Cursor::between(last, job.id)) });
                }
                (looked_at, last) = (looked_at + 1, Some(job.id));
                let is_wanted = |one: &Operation| tenant.is_none() || one.tenant.as_ref() == tenant;
                items.extend(read.as_ref().and_then(Operation::of).filter(is_wanted));
            }
        }
        Ok(Page { items, next: listed.next })
    }

    /// Stops an operation. Changes already made stay.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn abort(&self, id: JobId, by: &Actor) -> StoreResult<Option<Operation>> {
        if self.operation(id).await?.is_none() {
            return Ok(None);
        }
        self.change(Change::new(id, ChangeVerb::Abort), by).await?;
        self.operation(id).await
    }
}

impl Operation {
    /// Reads the operation of a job; `None` if it is another kind of job, or was listed without its payload.
    pub fn of(job: &Job) -> Option<Operation> {
        if job.lane.kind.as_str() != KIND {
            return None;
        }
        let document = Document::decode(job.payload.as_deref()?).ok()?;
        let state = match job.state() {
            State::Scheduled | State::Leased => OperationState::Running,
            State::Paused => OperationState::Paused,
            State::Succeeded => OperationState::Done,
            State::Failed | State::Dead | State::Cancelled => OperationState::Aborted,
        };
        let mut operation = document.operation(job.id, state, job.created);
        operation.finished = job.status.finished();
        if state == OperationState::Aborted && operation.reason.is_none() {
            let failure = job.failure.as_ref().filter(|_| job.state() != State::Cancelled);
            let why =
                failure.map_or("an operator aborted the operation", |failure| failure.message());
            operation.reason = Some(why.to_owned());
        }
        Some(operation)
    }
}
