//! The durable retry engine: claims, runs and settles jobs.
//!
//! An [`Engine`] accepts jobs, leases due jobs from its store, holds them in a timing [`wheel`]
//! until their exact time, runs them, decides what follows, and settles the result. Several engines
//! share one store: each is a holder with a lease, and the jobs of a dead holder pass to the
//! others.
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
//! | observe | [`Engine::status`], [`Listener`], [`meters`], [`trace`] |
//! | notify people | [`notify`] |
//! | serve remote workers | [`RemoteWorker`] |

#![warn(missing_docs)]

mod settings;
mod ceilings;
mod tenant_settings;
mod routes;
mod runner;
mod checkpoint;
mod submit;
mod gather;
mod caps;
mod calls;
mod claim;
pub mod wheel;
mod dispatch;
mod attempt;
mod settle;
mod operation;
mod workers;
mod admission;
mod held;
mod park;
mod rate;
mod budget;
mod shards;
mod counts;
mod job_counts;
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

pub use self::admission::HeldBecause;
pub use self::budget::BudgetSettings;
pub use self::builder::{EngineBuilder, StartError};
pub use self::ceilings::{Ceilings, OverCeiling};
pub use self::checkpoint::CheckpointError;
pub use self::counts::DecisionCount;
pub use self::engine::{Engine, EngineStatus, Shutdown};
pub use self::events::{JobHappened, Listener, Missed};
pub use self::held::HeldJob;
pub use self::job_counts::JobCounts;
pub use self::operation::{
    Bulk, BulkVerb, OperateError, Operation, OperationState, Preview, Selection,
};
pub use self::rate::{Rate, RateError};
pub use self::runner::{IntoReport, JobContext, JobKind, Reporting, Runner};
pub use self::settings::{
    BreakerSettings, EngineSettings, KindSettings, REGION_RULE, RunnerKind, SettingError, is_region,
};
pub use self::shards::ShardRouter;
pub use self::submit::{Receipt, Submit, SubmitError};
pub use self::supervise::EngineFailure;
pub use self::tenant_settings::TenantSettings;
pub use self::workers::{RemoteWorker, WorkerError, WorkerHeard, WorkerResult, WorkerSettled};

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
