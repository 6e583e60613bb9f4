//! Types, rules and the store interface of the Rewheel engine, without I/O.
//!
//! A [job](NewJob) is the durable unit of work. It is in one [`State`] at a time. While it is
//! leased, it belongs to one [holder](HolderId), and every write by this holder contains the
//! [`Fence`] of the lease. The pure function [`decide`] decides what follows an attempt.
//!
//! # Where to find what
//!
//! | subject | items |
//! | --- | --- |
//! | a job | [`NewJob`], [`Job`], [`JobId`], [`Key`], [`Priority`], [`Lane`] |
//! | jobs with the same key | [`Duplicates`], [`Debounce`] |
//! | its states | [`State`], [`Cause`]: the one table of legal transitions |
//! | a kind, a tenant | [`Kind`], [`KindName`], [`Tenant`] |
//! | which process may run a job | [`Holder`], [`HolderId`], [`Lease`], [`Fence`] |
//! | what follows an attempt | [`decide`], [`Decision`], [`Policy`], [`Failure`] |
//! | rules for failures | [`FailureRules`], [`FailureRule`], [`Action`] |
//! | groups of failures | [`Incident`] |
//! | what happened, by kind and minute | [`KindCounts`], [`HistorySlot`], [`HistoryTimeline`] |
//! | who changed what, who may | [`AuditEntry`], [`Actor`], [`Token`], [`TokenRole`] |
//! | limits | [`Limits`] |
//! | what a database must do | [`store`]: the traits that every store implements |

#![warn(missing_docs)]

mod limits;
mod id;
mod name;
mod timestamp;
mod priority;
mod state;
mod failure;
mod format;
mod decision;
mod report;
mod failure_rules;
mod shard;
mod group;
mod job;
mod duplicates;
mod job_result;
mod lease;
mod kind;
mod budget;
mod ramp;
mod audit;
mod mask;
mod redact;
mod printable;
mod event;
mod incident;
mod kind_history;
mod token;
pub mod store;

pub use self::audit::{Actor, AuditEntry, AuditFields, AuditNote, Transition};
pub use self::budget::{Floor, RetryAsk, RetryPool};
pub use self::decision::{Decision, DueReason, GiveUp, History, Policy, Report, decide};
pub use self::duplicates::{
    Debounce, Duplicates, DuplicatesError, OnDuplicate, OnKey, UniqueUntil, Waits, replaced_facts,
};
pub use self::event::JobEvent;
pub use self::failure::Failure;
pub use self::failure_rules::{
    Action, ActionError, FailureRule, FailureRules, Routed, RuleError, Sticky,
};
pub use self::format::Format;
pub use self::group::{JobGroup, OnDead};
pub use self::id::{Fence, HolderId, IdError, JobId, Turn, Version};
pub use self::incident::{FailedJob, Incident, Incidents};
pub use self::job::{Job, Lane, NewJob, Retain, Status, Wanted, When};
pub use self::job_result::{
    ContentType, ContentTypeError, DropReason, GivenResult, JobResult, StoredResult, SuccessCode,
};
pub use self::kind::{
    Kind, KindChange, KindChanged, KindEdit, KindEditVerb, KindEdited, NewKind, Parked,
};
pub use self::kind_history::{HistoryPoint, HistorySlot, HistoryTimeline, KindCounts};
pub use self::lease::{ExpiryWatch, Holder, Lease, NewHolder, Role, WorkerOwner};
pub use self::limits::Limits;
pub use self::mask::{MASKED, masked_secret, masked_url};
pub use self::name::{GroupKey, Key, KindName, NameError, ShardKey, Tenant, TokenName};
pub use self::printable::{is_unprintable, printable};
pub use self::priority::{Priority, PriorityError};
pub use self::ramp::Ramp;
pub use self::redact::{SecretUrl, redact, redact_setting, redact_urls};
pub use self::shard::Shard;
pub use self::state::{Cause, State, UnknownState};
pub use self::timestamp::Timestamp;
pub use self::token::{
    NewToken, Token, TokenHash, TokenId, TokenIdError, TokenPut, TokenRevoked, TokenRole,
    TokenRoles, UnknownRole,
};

/// Runs the example of this crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
