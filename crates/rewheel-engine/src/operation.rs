//! Changes many jobs, as a job of its own: it survives the node that runs it.

mod selection;
mod document;
mod canary;
mod run;

pub use self::selection::Selection;

pub(crate) use self::run::Operator;

use self::document::Document;
use crate::engine::Engine;
use crate::rate::Rate;
use crate::settings::KindSettings;
use crate::submit::{self, SubmitError};
use rewheel::Backoff;
use rewheel_core::store::{
    Answer, Change, Count, Cursor, Filter, Insert, Inserted, Page, PageRequest, StoreError, What,
};
use rewheel_core::{Actor, Job, JobId, KindName, NewJob, Priority, State, Tenant, Timestamp, When};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What the kind of operations is called. Names that begin like it are the engine's own.
pub(crate) const KIND: &str = "rewheel.operation";

/// Jobs that a canary step may have: all of them are watched.
const STEP_MAX: u32 = 1_000;

/// Steps that a canary may have.
const STEPS_MAX: usize = 10;

/// Operations that are looked at for one page of those of a tenant: each is read by itself.
const LOOKED_AT_MAX: usize = 200;

/// What is done to many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkVerb {
    /// Stops them.
    Cancel,
    /// Lets them wait.
    Pause,
    /// Lets them go on.
    Resume,
    /// Lets them run now.
    Retry,
    /// Puts dead letters back to work.
    Redrive,
}

impl BulkVerb {
    /// Every one of them.
    pub const ALL: [BulkVerb; 5] =
        [BulkVerb::Cancel, BulkVerb::Pause, BulkVerb::Resume, BulkVerb::Retry, BulkVerb::Redrive];

    /// Returns its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            BulkVerb::Cancel => "cancel",
            BulkVerb::Pause => "pause",
            BulkVerb::Resume => "resume",
            BulkVerb::Retry => "retry",
            BulkVerb::Redrive => "redrive",
        }
    }

    /// Returns the states whose jobs are meant where nobody says which. Dead letters are cancelled or
    /// retried only by whoever asks for dead letters.
    pub const fn states(self) -> &'static [State] {
        match self {
            BulkVerb::Cancel => &[State::Scheduled, State::Leased, State::Paused],
            BulkVerb::Pause => &[State::Scheduled, State::Leased],
            BulkVerb::Resume => &[State::Paused],
            BulkVerb::Retry => &[State::Scheduled],
            BulkVerb::Redrive => &[State::Dead],
        }
    }

    fn what(self, deadline: Option<When>) -> What {
        match self {
            BulkVerb::Cancel => What::Cancel,
            BulkVerb::Pause => What::Pause,
            BulkVerb::Resume => What::Resume,
            BulkVerb::Retry => What::Retry,
            BulkVerb::Redrive => What::Redrive { deadline },
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
    /// What is done.
    pub verb: BulkVerb,
    /// To which jobs.
    pub selection: Selection,
    /// Whether a selection that lets every job through is meant so. Without it such an order is refused.
    pub all: bool,
    /// How many in a time at most; as many as the store takes if not set.
    pub rate: Option<Rate>,
    /// A redrive goes in steps of so many jobs first, each after the jobs before have ended well. It
    /// stops when they fail again.
    pub canary: Vec<u32>,
    /// A new deadline for dead letters that are redriven: those whose own has passed need one.
    pub deadline: Option<When>,
}

/// An order cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// A field of it makes no sense.
    #[error("{field} {why}")]
    Field {
        /// Which.
        field: &'static str,
        /// The rule.
        why: String,
    },
    /// The operation could not be submitted.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The store says why.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What an order would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// How many jobs.
    pub count: Count,
    /// Some of them, the newest first.
    pub sample: Vec<JobId>,
}

/// How far an order was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The job that carries it out.
    pub id: JobId,
    /// What is done.
    pub verb: BulkVerb,
    /// Whether it still is.
    pub state: OperationState,
    /// How many jobs it was about when it was ordered.
    pub total: u64,
    /// How many were changed.
    pub done: u64,
    /// How many could not be.
    pub failed: u64,
    /// Why those could not be, and how many for each reason.
    pub refused: BTreeMap<String, u64>,
    /// Why it ended before its end.
    pub reason: Option<String>,
    /// Which step of the canary it is at, counted from 1, and of how many; none once all went well.
    pub step: Option<(usize, usize)>,
    /// The tenant whose jobs it is about, where it is about those of one.
    pub tenant: Option<Tenant>,
    /// Who ordered it.
    pub by: Actor,
    /// When it was ordered.
    pub created: Timestamp,
    /// When it ended.
    pub finished: Option<Timestamp>,
}

/// Whether an operation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationState {
    /// It does.
    Running,
    /// A person lets it wait.
    Paused,
    /// It came to its end.
    Done,
    /// It was stopped by a person, or by its canary.
    Aborted,
}

impl OperationState {
    /// Returns its name on the wire.
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
    /// Orders a verb for jobs.
    pub const fn new(verb: BulkVerb, selection: Selection) -> Bulk {
        Bulk { verb, selection, all: false, rate: None, canary: Vec::new(), deadline: None }
    }

    /// Says that every job is meant.
    #[must_use]
    pub fn all(mut self) -> Bulk {
        self.all = true;
        self
    }

    /// Sets how many in a time at most.
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

    /// Says what makes no sense, or is too much: every job is changed only where `all` says so.
    ///
    /// # Errors
    /// The first field that cannot be obeyed.
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

    /// Says what makes no sense. Enough where nothing is changed.
    fn check_fields(&self) -> Result<(), OperateError> {
        let wrong = |field, why: String| Err(OperateError::Field { field, why });
        let verb = self.verb;
        if let Some(kind) = self.selection.filter.kinds.iter().find(|kind| kind.is_reserved()) {
            return wrong("kind", format!("cannot be {kind}: its jobs are internal to the engine"));
        }
        let fits = |state: &State| {
            verb.states().contains(state) || verb.what(None).leads_to(*state).is_some()
        };
        if let Some(state) = self.selection.filter.states.iter().find(|state| !fits(state)) {
            return wrong(
                "state",
                format!("cannot be {state}: {verb} does not apply to such jobs"),
            );
        }
        if verb != BulkVerb::Redrive && !self.canary.is_empty() {
            return wrong("canary", format!("is for redrive only, not for {verb}"));
        }
        if verb != BulkVerb::Redrive && self.deadline.is_some() {
            return wrong("deadline", format!("is for redrive only, not for {verb}"));
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

/// What operations run by: they wait for a store that is away, and for nothing else.
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
    KindName::parse(KIND).unwrap_or_else(|_| unreachable!("it is a name"))
}

impl Engine {
    /// Says what an order would change, and changes nothing. The order may be about every job.
    ///
    /// # Errors
    /// What makes no sense about it, or what the store says.
    pub async fn preview(&self, order: &Bulk) -> Result<Preview, OperateError> {
        order.check_fields()?;
        let selection = order.selection.of(order.verb, None);
        Ok(selection.preview(&**self.store()).await?)
    }

    /// Begins to change many jobs. What is returned is durable, and goes on whatever happens to this
    /// engine; ask [`Engine::operation`] how far it is.
    ///
    /// # Errors
    /// What makes no sense about it, or what the store says.
    pub async fn operate(&self, order: &Bulk, by: &Actor) -> Result<Operation, OperateError> {
        order.check()?;
        let store = self.store();
        let began = store.now().await?;
        // What is submitted later is left out anyway: a limit in the future does not narrow anything down.
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
        let job = NewJob { priority, ..NewJob::new(self.new_id(), kind, document.encode()) };
        match self.insert(&Insert::new(std::slice::from_ref(&job))).await?.pop() {
            Some(Inserted::Created { .. } | Inserted::Duplicate { .. }) => {}
            Some(Inserted::Refused(why)) => {
                return Err(OperateError::Submit(SubmitError::Refused(why)));
            }
            Some(Inserted::LeftOut) | None => return Err(submit::no_result().into()),
        }
        Ok(document.operation(job.id, OperationState::Running, began))
    }

    /// Returns how far an order was carried out; `None` where there is no such operation, or it ended
    /// long ago.
    ///
    /// # Errors
    /// Passes on what the store says.
    pub async fn operation(&self, id: JobId) -> Answer<Option<Operation>> {
        let job = self.store().get(id).await?;
        Ok(job.as_ref().and_then(Operation::of))
    }

    /// Returns operations, the newest first: all, or those about the jobs of one tenant only. A page may be short and still
    /// have a next one. Its cursor names no operation that is left out.
    ///
    /// # Errors
    /// Passes on what the store says.
    pub async fn operations(
        &self,
        page: &PageRequest,
        tenant: Option<&Tenant>,
    ) -> Answer<Page<Operation>> {
        let filter = Filter { kinds: vec![kind()], ..Filter::default() };
        // One more than may be looked at tells where the next page begins.
        let looked_at_max = if tenant.is_some() { LOOKED_AT_MAX } else { page.limit };
        let request = PageRequest { limit: looked_at_max.saturating_add(1), ..*page };
        let listed = self.store().list(&filter, &request).await?;
        let mut items = Vec::new();
        for (place, job) in listed.items.iter().enumerate() {
            if let Some(last) = place.checked_sub(1).and_then(|last| listed.items.get(last))
                && (items.len() >= page.limit || place >= looked_at_max)
            {
                return Ok(Page { items, next: Some(Cursor::between(last.id, job.id)) });
            }
            // A list is without payloads, which say how far they are.
            let operation = self.operation(job.id).await?;
            items.extend(operation.filter(|one| tenant.is_none() || one.tenant.as_ref() == tenant));
        }
        Ok(Page { items, next: listed.next })
    }

    /// Stops an operation where it is. What it has changed stays changed.
    ///
    /// # Errors
    /// Passes on what the store says.
    pub async fn abort(&self, id: JobId, by: &Actor) -> Answer<Option<Operation>> {
        if self.operation(id).await?.is_none() {
            return Ok(None);
        }
        self.change(Change::new(id, What::Abort), by).await?;
        self.operation(id).await
    }
}

impl Operation {
    /// Reads the operation that a job carries out; `None` where it is another kind of job, or was
    /// listed without its payload.
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
            let why = failure.map_or("an operator aborted it", |failure| failure.message());
            operation.reason = Some(why.to_owned());
        }
        Some(operation)
    }
}
