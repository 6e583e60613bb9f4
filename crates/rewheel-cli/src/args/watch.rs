//! Defines the arguments of the commands for kinds, the audit log and events.

use super::jobs::Paging;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum KindsCommand {
    /// List all kinds with their job counts (default)
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a kind with its settings
    Show(KindName),
    /// Replace the settings of a kind; creates the kind if it does not exist
    Put {
        /// Name the kind
        kind: String,
        /// Set all settings: a JSON object, @FILE, or - to read stdin
        settings: String,
    },
    /// Change some settings of a kind, and keep the others
    Patch {
        /// Name the kind
        kind: String,
        /// Set these settings: a JSON object, @FILE, or - to read stdin; null restores a default
        settings: String,
    },
    /// Delete a kind, after a confirmation; without a terminal it needs --yes
    Delete {
        /// Name the kind
        kind: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Pause a kind: its jobs start no attempts until it is resumed
    Pause(KindName),
    /// Resume a paused kind
    Resume(KindName),
    /// Control the circuit breaker of a kind
    #[command(subcommand)]
    Breaker(BreakerCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BreakerCommand {
    /// Open the breaker: jobs of the kind do not start until it is closed or reset
    Open(KindName),
    /// Keep the breaker closed until it is reset: jobs start even if many attempts fail
    Close(KindName),
    /// Reset the breaker to automatic; also ends a wait that the called service asked for
    Reset(KindName),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KindName {
    /// Name the kind
    pub(crate) kind: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    /// Match audit entries about this job
    #[arg(long, value_name = "ID")]
    pub(crate) job: Option<String>,

    /// Match audit entries with this action, such as cancel, edit or "put kind" (repeatable)
    #[arg(long)]
    pub(crate) what: Vec<String>,

    /// Match audit entries about this kind (repeatable)
    #[arg(long)]
    pub(crate) kind: Vec<String>,

    /// Match audit entries by this actor, such as token:ops (repeatable)
    #[arg(long)]
    pub(crate) who: Vec<String>,

    #[command(flatten)]
    pub(crate) paging: Paging,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Events {
    /// Keep printing new events until interrupted
    #[arg(long)]
    pub(crate) follow: bool,

    /// Match events of jobs of this kind (repeatable)
    #[arg(long)]
    pub(crate) kind: Vec<String>,

    /// Match events of this job
    #[arg(long, value_name = "ID")]
    pub(crate) job: Option<String>,

    /// Start after this event number (default: all stored events; with --follow, only new ones)
    #[arg(long, value_name = "NUMBER")]
    pub(crate) after: Option<u64>,

    /// Stop after this many events
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<u64>,
}
