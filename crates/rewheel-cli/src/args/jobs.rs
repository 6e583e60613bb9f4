//! Defines the arguments of the commands that submit, list and change jobs.

use clap::{Args as ClapArgs, Subcommand};
use rewheel_core::SecretUrl;
use std::path::PathBuf;

/// The options of `submit` that apply to one job.
const ONE_JOB: [&str; 19] = [
    "kind",
    "payload",
    "key",
    "unique_until",
    "on_duplicate",
    "debounce",
    "debounce_max",
    "tenant",
    "shard_key",
    "group_key",
    "priority",
    "delay",
    "due",
    "deadline",
    "attempts_max",
    "attempt_timeout",
    "backoff",
    "store",
    "wait",
];

#[derive(Debug, ClapArgs)]
pub(crate) struct Submit {
    /// Set the kind of the job
    #[arg(required_unless_present = "batch")]
    pub(crate) kind: Option<String>,

    /// Set the payload: JSON text, @FILE, or - to read stdin
    #[arg(allow_negative_numbers = true, required_unless_present = "batch")]
    pub(crate) payload: Option<String>,

    /// Submit every job of a file: JSON Lines or one JSON array; - reads stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ONE_JOB)]
    pub(crate) batch: Option<PathBuf>,

    /// Store the valid jobs of a batch even if others are rejected (exit code 3)
    #[arg(long, requires = "batch", conflicts_with = "kind")]
    pub(crate) partial: bool,

    /// Set the idempotency key: a second submit with this key returns the same job
    #[arg(long)]
    pub(crate) key: Option<String>,

    /// Let a job keep its key until it has `ended` (default) or until it is `claimed`
    #[arg(long, value_name = "WHEN")]
    pub(crate) unique_until: Option<String>,

    /// Return the waiting job that has the key (`answer`, default), or `replace` it
    #[arg(long, value_name = "ACTION")]
    pub(crate) on_duplicate: Option<String>,

    /// Run the job when no submit with its key has arrived for this long, such as 2s
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) debounce: Option<String>,

    /// Postpone a debounced job no longer than this (default: ten times --debounce)
    #[arg(long, value_name = "DURATION", requires = "debounce", allow_hyphen_values = true)]
    pub(crate) debounce_max: Option<String>,

    /// Set the tenant of the job
    #[arg(long)]
    pub(crate) tenant: Option<String>,

    /// Set the shard key; the tenant and the shard key select the shard
    #[arg(long)]
    pub(crate) shard_key: Option<String>,

    /// Set the group: jobs with this group key run one at a time, in order
    #[arg(long)]
    pub(crate) group_key: Option<String>,

    /// Set the priority from 0 to 9; 9 runs first (default 5)
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) priority: Option<i64>,

    /// Wait this long before the first attempt, such as 1h30m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<String>,

    /// Do not start the job before this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) due: Option<String>,

    /// Start no attempt after this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,

    /// Limit the number of attempts (default: the limit of the kind)
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) attempts_max: Option<i64>,

    /// Limit the duration of one attempt (default: the limit of the kind)
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) attempt_timeout: Option<String>,

    /// Set the delays between attempts, such as "exponential 100ms x2 max 30s jitter full"
    #[arg(long)]
    pub(crate) backoff: Option<String>,

    /// Wait until the job has ended, at most this long; fail if it has not succeeded by then
    #[arg(long, value_name = "DURATION", conflicts_with = "store")]
    pub(crate) wait: Option<String>,

    /// Write to this store directly, without a server
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<SecretUrl>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List jobs, newest first
    List(Box<List>),
    /// Show a job with its payload, attempts and audit log
    Show {
        /// Select the job by id
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Print the result of a job that succeeded
    Result {
        /// Select the job by id
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Cancel jobs by id or by filter
    #[command(after_help = CANCEL_ASKS)]
    Cancel(Box<Change>),
    /// Run jobs now, by id or by filter; also restarts dead letters
    #[command(after_help = ASKS)]
    Retry(Box<Change>),
    /// Pause jobs by id or by filter
    #[command(after_help = ASKS)]
    Pause(Box<Change>),
    /// Resume paused jobs by id or by filter
    Resume(Box<Change>),
    /// Change fields of a job; pause it first if it is running
    Edit(Box<Edit>),
}

const CANCEL_ASKS: &str = "With a filter, the command counts the jobs and asks for confirmation on a terminal. \
Without a terminal, the command needs --yes.";

pub(super) const ASKS: &str = "With a filter, the command counts the jobs and asks for confirmation on a terminal. \
Without a terminal, or with --yes, the command changes the jobs without a question.";

/// Jobs to change: some ids, or a filter.
#[derive(Debug, ClapArgs)]
pub(crate) struct Change {
    /// Select jobs by id; without ids, use the filter options below
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    /// Match jobs in this state (repeatable)
    #[arg(long)]
    pub(crate) state: Vec<String>,

    #[command(flatten)]
    pub(crate) which: Which,

    /// Match jobs of this incident
    #[arg(long, value_name = "ID")]
    pub(crate) incident: Option<String>,

    /// Match every job that the command can change
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) pace: Pace,
}

/// Conditions that jobs must meet.
#[derive(Debug, ClapArgs)]
pub(crate) struct Which {
    /// Match jobs of this kind (repeatable)
    #[arg(long)]
    pub(crate) kind: Vec<String>,

    /// Match jobs of this tenant
    #[arg(long)]
    pub(crate) tenant: Option<String>,

    /// Match jobs whose last failure has this category
    #[arg(long)]
    pub(crate) category: Option<String>,

    /// Match jobs whose last failure has this code
    #[arg(long)]
    pub(crate) code: Option<String>,

    /// Match jobs that wait for this reason, such as backoff, retry_budget or rate_limit
    #[arg(long)]
    pub(crate) reason: Option<String>,

    /// Match jobs with this number of used attempts, such as 3, '>3' or '<=3'
    #[arg(long, value_name = "NUMBER")]
    pub(crate) attempt: Option<String>,

    /// Match jobs with this text in the id, the key or the last failure
    #[arg(long, value_name = "TEXT")]
    pub(crate) q: Option<String>,

    /// Match jobs due at this time or later
    #[arg(long, value_name = "TIME")]
    pub(crate) due_after: Option<String>,

    /// Match jobs due before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) due_before: Option<String>,

    /// Match jobs submitted at this time or later
    #[arg(long, value_name = "TIME")]
    pub(crate) created_after: Option<String>,

    /// Match jobs submitted before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) created_before: Option<String>,
}

impl Which {
    /// Returns the conditions that can occur once, with their names.
    pub(crate) fn single(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("tenant", &self.tenant),
            ("category", &self.category),
            ("code", &self.code),
            ("reason", &self.reason),
            ("attempt", &self.attempt),
            ("q", &self.q),
            ("due_after", &self.due_after),
            ("due_before", &self.due_before),
            ("created_after", &self.created_after),
            ("created_before", &self.created_before),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// Which part of a list to read.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct Paging {
    /// Limit the results per page: 1 to 1000
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<String>,

    /// Continue after the page that returned this cursor
    #[arg(long)]
    pub(crate) cursor: Option<String>,

    /// Read all pages, not only one
    #[arg(long)]
    pub(crate) all_pages: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct List {
    /// Match jobs in this state (repeatable)
    #[arg(long)]
    pub(crate) state: Vec<String>,

    /// Match the job with exactly this idempotency key
    #[arg(long)]
    pub(crate) key: Option<String>,

    /// Match the follow-ups of this job
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,

    /// Match the jobs of this schedule
    #[arg(long, value_name = "NAME", conflicts_with = "parent")]
    pub(crate) schedule: Option<String>,

    /// Match the jobs of the group with this key
    #[arg(long)]
    pub(crate) group_key: Option<String>,

    /// Match jobs of this incident
    #[arg(long, value_name = "ID")]
    pub(crate) incident: Option<String>,

    /// Match leased jobs of the holders with this id or name
    #[arg(long)]
    pub(crate) holder: Option<String>,

    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) paging: Paging,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Edit {
    /// Select the job by id
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Replace the payload: JSON text, @FILE, or - to read stdin
    #[arg(long, value_name = "JSON", allow_negative_numbers = true)]
    pub(crate) payload: Option<String>,

    /// Set the priority from 0 to 9; 9 runs first
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) priority: Option<i64>,

    /// Start the next attempt no earlier than this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) due: Option<String>,

    /// Start no attempt after this time; `none` removes the deadline
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,

    /// Limit the number of attempts
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) attempts_max: Option<i64>,

    /// Change the job only if it still has this version
    #[arg(long, value_name = "NUMBER")]
    pub(crate) if_version: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List dead letters, newest first
    List(Box<DeadList>),
    /// Run dead letters again, by id or by filter
    #[command(after_help = ASKS)]
    Redrive(Box<Redrive>),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeadList {
    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) paging: Paging,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Redrive {
    /// Select dead letters by id; without ids, use the filter options below
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) which: Which,

    /// Match dead letters of this incident
    #[arg(long, value_name = "ID")]
    pub(crate) incident: Option<String>,

    /// Match every dead letter
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) care: Care,
}

/// Options for redriving many jobs.
#[derive(Debug, ClapArgs)]
pub(crate) struct Care {
    /// Redrive in steps of these sizes, such as 1,10,100, then the rest; stop if a job dies again or a tenth of a step fails
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) canary: Vec<u32>,

    /// Set a new deadline (required for dead letters whose deadline has passed)
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,

    #[command(flatten)]
    pub(crate) pace: Pace,
}

/// Options for changing many jobs.
#[derive(Debug, ClapArgs)]
pub(crate) struct Pace {
    /// Count the jobs, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Limit how fast jobs are changed, such as 100/s
    #[arg(long)]
    pub(crate) rate: Option<String>,

    /// Print the id of the operation, and do not wait for it to finish
    #[arg(long)]
    pub(crate) detach: bool,

    /// Skip the confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}
