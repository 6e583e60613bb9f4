//! The durable retry engine: claims, runs and settles jobs.
//!
//! An [`Engine`] accepts jobs, leases due jobs from its store, holds them in a timing [`wheel`]
//! until their exact time, runs them, decides what follows, and settles the result. Several engines
//! share one store: each is a holder with a lease, and the other holders take over the jobs of a dead holder.
//!
//! ```text
//!  submit ─► store ─► claim ─► wheel ─► dispatch ─► decide ─► settle
//!              ▲                 ▲                               │
//!              └── not sticky ───┴────────── sticky ─────────────┘
//! ```
//!
//! # Where to find what
//!
//! | to | use |
//! | --- | --- |
//! | start and stop an engine | [`Engine::builder`], [`EngineBuilder`], [`Engine::shutdown`] |
//! | define a job and its handler | [`JobKind`], [`JobContext`], [`IntoReport`] |
//! | run jobs in another way | [`Runner`] |
//! | submit | [`Engine::submit`], [`Submit`], [`Receipt`] |
//! | configure | [`EngineSettings`], [`KindSettings`], [`TenantSettings`], [`Rate`] |
//! | change many jobs | [`Bulk`], [`Operation`] |
//! | observe | [`Engine::status`], [`EventStream`], [`meters`], [`trace`] |
//! | notify people | [`notify`] |
//! | serve remote workers | [`RemoteWorker`] |
//!
//! # A program
//!
//! A program needs three crates: `rewheel` for policies, this crate for jobs, `rewheel-stores` for a
//! store. This crate re-exports the types of `rewheel-core` that a program uses. The types for
//! calls to the store itself are in [`store`].
//!
//! ```
//! use rewheel::{Category, minutes, seconds};
//! use rewheel_engine::store::{Filter, PageRequest};
//! use rewheel_engine::{
//!     Actor, Change, Changed, Engine, Failure, IfRefused, Insert, Inserted, Job, JobContext, JobId,
//!     JobKind, KindName, NewJob, Priority, Refusal, Report, State, Status, Tenant, Timestamp, ChangeVerb,
//!     When,
//! };
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct ChargeCard { order: u64, cents: u64 }
//! impl JobKind for ChargeCard { const NAME: &'static str = "charge-card"; }
//!
//! async fn charge(ctx: JobContext, job: ChargeCard) -> Result<(), Report> {
//!     match job.cents {
//!         0 => Err(Report::dead(Failure::new(Category::Rejected, None, "nothing to charge"))),
//!         _ if ctx.attempt() == 1 => Err(Report::retry_after(seconds(0), "the bank is busy")),
//!         _ => Ok(()),
//!     }
//! }
//!
//! /// Describes the end of a job.
//! fn ended(job: &Job) -> Option<(JobId, Timestamp)> {
//!     match job.status {
//!         Status::Succeeded(at) | Status::Dead(at) => Some((job.id, at)),
//!         _ => None,
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = rewheel_stores::connect("memory://").await?;
//! let engine = Engine::builder(store.clone()).handler(charge).start().await?;
//!
//! // A typed job.
//! let paid = engine.submit(ChargeCard { order: 17, cents: 4200 }).key("order-17").await?;
//! while store.get(paid.id).await?.as_ref().and_then(ended).is_none() {
//!     tokio::task::yield_now().await;
//! }
//!
//! // Jobs field by field, all or none.
//! let mut first = NewJob::new(engine.new_id(), KindName::parse("charge-card")?, b"{}".to_vec());
//! first.tenant = Some(Tenant::parse("acme")?);
//! first.priority = Priority::new(9)?;
//! first.due = When::In(minutes(5));
//! let second = NewJob { id: engine.new_id(), kind: KindName::parse("no-such-kind")?, ..first.clone() };
//! let jobs = [first, second];
//! let insert = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
//! let results = engine.insert(&insert).await?;
//! assert_eq!(results, [Inserted::LeftOut, Inserted::Refused(Refusal::UnknownKind)]);
//!
//! // What an operator does.
//! let later = engine.submit(ChargeCard { order: 18, cents: 1 }).delay(minutes(5)).await?;
//! let changed = engine.change(Change::new(later.id, ChangeVerb::Cancel), &Actor::new("ops")).await?;
//! assert!(matches!(changed, Changed::Applied { state: State::Cancelled, .. }));
//! let listed = store.list(&Filter::default(), &PageRequest::first(10)).await?;
//! assert_eq!(listed.items.len(), 2);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod settings;
mod ceilings;
mod tenant_settings;
mod failure_rules;
mod runner;
mod checkpoint;
mod follow_ups;
mod output;
mod submit;
mod submit_batching;
mod caps;
mod pending_calls;
mod lanes;
mod claim;
pub mod wheel;
mod dispatch;
mod attempt;
mod settle;
mod own_jobs;
mod operation;
mod waiters;
mod results;
mod schedule;
mod workers;
mod admission;
mod held;
mod park;
mod kind_health;
mod rate;
mod budget;
mod shards;
mod counts;
mod job_counts;
mod kind_history;
mod depth;
pub mod meters;
pub mod trace;
mod events;
mod heartbeat;
mod supervise;
mod takeover;
mod housekeeping;
mod retention;
mod guard;
pub mod notify;
mod shared;
mod leases;
mod signals;
mod kinds;
mod kinds_read;
mod builder;
mod engine;

pub use self::admission::HeldReason;
pub use self::budget::BudgetSettings;
pub use self::builder::{EngineBuilder, StartError};
pub use self::ceilings::{Ceilings, OverCeiling};
pub use self::checkpoint::CheckpointError;
pub use self::counts::DecisionCount;
pub use self::depth::{Depth, KindDepth};
pub use self::engine::{Engine, EngineStatus, Shutdown};
pub use self::events::{EventStream, EventsMissed, JobStateChange};
pub use self::follow_ups::{FollowUp, IntoFollowUp};
pub use self::held::HeldJob;
pub use self::job_counts::JobCounts;
pub use self::kind_health::KindHealth;
pub use self::operation::{
    Bulk, BulkVerb, Canary, OperateError, Operation, OperationState, Preview, Selection,
};
pub use self::output::SetResultError;
pub use self::rate::{Rate, RateError};
pub use self::results::{EndOfJob, ResultError, TooManyWaiters, Waited};
pub use self::runner::{IntoReport, JobContext, JobKind, Reporting, Runner, Said, Value};
pub use self::schedule::{
    CatchUp, Cron, CronError, Fired, Overlap, Schedule, ScheduleChange, ScheduleChanged,
    ScheduleError, ScheduleStatus, Timing,
};
pub use self::settings::{
    BreakerSettings, EngineSettings, Hold, KindSettings, REGION_RULE, RunnerKind, SettingError,
    is_region,
};
pub use self::shards::ShardRouter;
pub use self::submit::{IntoSubmit, Receipt, Submit, SubmitError, SubmitMany};
pub use self::supervise::EngineFailure;
pub use self::tenant_settings::TenantSettings;
pub use self::workers::{HeartbeatReply, RemoteWorker, WorkerError, WorkerResult, WorkerSettled};

// What a program that submits, runs and operates jobs names, so that it needs no `rewheel-core` of
// its own.
pub use rewheel_core::store;
pub use rewheel_core::store::{
    AttemptEnd, AttemptRecord, Change, ChangeVerb, Changed, Edit, IfRefused, Insert, Inserted,
    Refusal, Sent, Store, StoreError, StoreResult,
};
pub use rewheel_core::{
    Action, ActionError, Actor, AuditEntry, Cause, ContentType, ContentTypeError, Debounce,
    Decision, DropReason, DueReason, Duplicates, DuplicatesError, Failure, FailureRule,
    FailureRules, Fence, GiveUp, HolderId, IdError, Incident, Incidents, Job, JobId, JobResult,
    Key, Kind, KindChange, KindChanged, KindEdit, KindEditVerb, KindEdited, KindName, Lane, Lease,
    Limits, NameError, NewJob, OnDuplicate, Parked, Priority, PriorityError, Report, Retain,
    RuleError, Shard, ShardKey, State, Status, Sticky, StoredResult, SuccessCode, Tenant,
    Timestamp, UniqueUntil, UnknownState, Version, Wanted, When, WorkerOwner,
};

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Runs the examples of the library's page as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;

/// Runs the examples of the engine's page as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/engine.md")]
struct EnginePage;

/// Runs the examples of limits as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/limits.md")]
struct LimitsPage;

/// Runs the examples of the retry budget documentation as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/retry-budget.md")]
struct RetryBudget;

/// Runs the examples of the failure handling documentation as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/failures.md")]
struct Failures;

/// Runs the example of this crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
