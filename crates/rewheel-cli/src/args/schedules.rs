//! Defines the arguments of the commands for schedules.

use super::jobs::Paging;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// List schedules with their next instant, newest first (default)
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a schedule with its next five instants
    Show(ScheduleName),
    /// Create a schedule, or replace its definition
    Put(Box<PutSchedule>),
    /// Pause a schedule: it submits no jobs until it is resumed
    Pause(ScheduleName),
    /// Resume a paused schedule, from its next instant on
    Resume(ScheduleName),
    /// Submit the job of a schedule now, and print its id
    Fire(ScheduleName),
    /// Remove a schedule, after a confirmation; without a terminal it needs --yes
    Remove {
        /// Name the schedule
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleName {
    /// Name the schedule
    pub(crate) name: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PutSchedule {
    /// Name the schedule
    pub(crate) name: String,

    /// Set the kind of the jobs
    pub(crate) kind: String,

    /// Set the payload of the jobs: JSON text, @FILE, or - to read stdin
    #[arg(allow_negative_numbers = true)]
    pub(crate) payload: String,

    /// Fire at these times: minute, hour, day of month, month, day of week, such as "0 3 * * *"
    #[arg(long, required_unless_present = "every", conflicts_with = "every")]
    pub(crate) cron: Option<String>,

    /// Use this time zone for --cron, such as Europe/Berlin (default UTC)
    #[arg(long, requires = "cron")]
    pub(crate) zone: Option<String>,

    /// Fire once per period, such as 15m
    #[arg(long, value_name = "DURATION")]
    pub(crate) every: Option<String>,

    /// Choose what happens while an earlier job has not ended: skip (default) or allow
    #[arg(long, value_name = "RULE")]
    pub(crate) overlap: Option<String>,

    /// Choose how many of the missed instants fire late: one (default) or none
    #[arg(long, value_name = "RULE")]
    pub(crate) catch_up: Option<String>,

    /// Set the tenant of the jobs
    #[arg(long)]
    pub(crate) tenant: Option<String>,

    /// Set the priority of the jobs from 0 to 9; 9 runs first (default 5)
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) priority: Option<i64>,

    /// Run each job this long after its instant, such as 5m
    #[arg(long, value_name = "DURATION")]
    pub(crate) delay: Option<String>,

    /// Run the jobs one at a time, together with other jobs of the kind that have this group key
    #[arg(long, value_name = "KEY")]
    pub(crate) group_key: Option<String>,

    /// Set the shard key; the tenant and the shard key select the shard
    #[arg(long, value_name = "KEY")]
    pub(crate) shard_key: Option<String>,

    /// Limit the number of attempts (default: the limit of the kind)
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) attempts_max: Option<i64>,

    /// Limit the time of each attempt, such as 30s (default: the limit of the kind)
    #[arg(long, value_name = "DURATION")]
    pub(crate) attempt_timeout: Option<String>,

    /// Set the delays between attempts, such as "exponential 100ms x2 max 30s jitter full"
    #[arg(long)]
    pub(crate) backoff: Option<String>,
}
