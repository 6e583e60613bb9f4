//! Defines the command-line arguments.

mod jobs;
mod watch;
mod schedules;
mod lab;

pub(crate) use self::jobs::{
    Care, Change, DeadCommand, DeadList, Edit, JobsCommand, List, Pace, Paging, Redrive, Submit,
    Which,
};
pub(crate) use self::lab::{
    ContentionArgs, DelayArgs, FlakyArgs, LabArgs, LabCommand, LabCommon, OutageArgs, OverloadArgs,
    RecoveryArgs, Traffic,
};
pub(crate) use self::schedules::{PutSchedule, SchedulesCommand};
pub(crate) use self::watch::{Audit, BreakerCommand, Events, KindsCommand};

use crate::bench::BenchArgs;
use crate::token::TokenCommand;
use clap::{Args as ClapArgs, Parser, Subcommand};
use rewheel_core::SecretUrl;
use std::net::SocketAddr;
use std::path::PathBuf;

const EVENTS_END: &str = "Without --follow the command prints the stored events, and ends after one second without an event, \
or after 5 seconds.\nA server starts to store events when a client requests them for the first time.";

/// Run jobs durably, and retry each job until it succeeds or its policy gives up
#[derive(Debug, Parser)]
#[command(name = "rewheel", version, long_version = crate::version::LONG, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Use this server
    #[arg(
        long,
        global = true,
        env = "REWHEEL_SERVER",
        hide_env_values = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:7420"
    )]
    pub(crate) server: SecretUrl,

    #[command(flatten)]
    pub(crate) credentials: Credentials,

    /// Print JSON documents, as the REST API returns them
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The credentials of client and server.
#[derive(Debug, ClapArgs)]
pub(crate) struct Credentials {
    /// Authenticate with this token; or set REWHEEL_TOKEN_FILE to a file that contains it
    #[arg(long, global = true, env = "REWHEEL_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// Trust the certificates in this PEM file as well
    #[arg(long, global = true, env = "REWHEEL_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a server with the engine and the REST API
    Serve(Serve),
    /// Submit a job or a batch of jobs, and print the ids
    Submit(Box<Submit>),
    /// List, show and change jobs
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// List, show and change kinds
    #[command(args_conflicts_with_subcommands = true)]
    Kinds {
        #[command(subcommand)]
        command: Option<KindsCommand>,
        #[command(flatten)]
        paging: Paging,
    },
    /// List, show and change schedules: jobs at the instants of a cron expression or a period
    #[command(args_conflicts_with_subcommands = true)]
    Schedules {
        #[command(subcommand)]
        command: Option<SchedulesCommand>,
        #[command(flatten)]
        paging: Paging,
    },
    /// List the holders: servers and workers that run jobs
    Holders {
        #[command(flatten)]
        paging: Paging,
    },
    /// Show job counts and engine statistics
    Stats,
    /// Show live statistics in the terminal
    Top {
        /// Refresh at this interval
        #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = rewheel::duration::parse)]
        every: std::time::Duration,
    },
    /// List dead letters or run them again
    #[command(subcommand)]
    Dead(DeadCommand),
    /// List incidents (failures grouped by cause), and change their jobs
    #[command(args_conflicts_with_subcommands = true)]
    Incidents {
        #[command(subcommand)]
        command: Option<IncidentsCommand>,
        #[command(flatten)]
        paging: Paging,
    },
    /// List, show and abort bulk operations
    #[command(subcommand)]
    Operations(OperationsCommand),
    /// Show the audit log: who changed what, newest first
    Audit(Box<Audit>),
    /// Print recent state changes of jobs, or follow them
    #[command(after_help = EVENTS_END)]
    Events(Events),
    /// Create, list and revoke access tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Check a store for lost jobs, a wrong clock and unsafe settings
    Doctor(Doctor),
    /// Send a test notification
    #[command(subcommand)]
    Notify(NotifyCommand),
    /// Check and show the config
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a shell completion script: `source <(rewheel completions bash)`
    Completions {
        /// Choose the shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages of all commands to a folder
    Man {
        /// Create the folder if it does not exist
        folder: PathBuf,
    },
    /// Check whether the server is ready: exit code 0 if it accepts requests and reaches its store
    Ready,
    /// Simulate retry policies against a failing dependency
    #[command(args_conflicts_with_subcommands = true)]
    Lab(Box<LabArgs>),
    /// Measure the throughput and latency of Rewheel on this machine
    Bench(Box<BenchArgs>),
    /// Create or update the tables of a store
    Migrate {
        /// Use this store, such as sqlite://rewheel.db
        #[arg(long, value_name = "URL")]
        store: SecretUrl,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the config, and report errors with key and line
    Check(ConfigFile),
    /// Show every setting and its origin; secrets are hidden
    Show(ConfigFile),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigFile {
    /// Read this config file (default: rewheel.toml in the current folder, if it exists)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Serve {
    /// Read this config file (default: rewheel.toml in the current folder, if it exists)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Keep jobs in this store (default sqlite://rewheel.db)
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<SecretUrl>,

    /// Listen on this address (default 127.0.0.1:7420)
    #[arg(long, value_name = "ADDRESS", value_parser = rewheel_server::config::parse_listen)]
    pub(crate) listen: Option<SocketAddr>,

    /// Pause every kind before any job starts, for example after a restore; `rewheel kinds resume` resumes a kind. Deadlines, notifications,
    /// retention and bulk operations continue
    #[arg(long, conflicts_with = "demo")]
    pub(crate) paused: bool,

    /// Also run a demo: a service that fails at times, and jobs that call it
    #[arg(long)]
    pub(crate) demo: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentsCommand {
    /// List failures grouped by cause, the largest group first (the default command)
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Show an incident: its cause, its jobs and since when they fail
    Show {
        /// Select the incident by id
        id: String,
    },
    /// Pause the jobs of an incident that wait for their next attempt
    Hold {
        /// Select the incident by id
        id: String,
        #[command(flatten)]
        pace: Pace,
    },
    /// Resume the paused jobs of an incident
    Release {
        /// Select the incident by id
        id: String,
        #[command(flatten)]
        pace: Pace,
    },
    /// Run the dead letters of an incident again
    Redrive {
        /// Select the incident by id
        id: String,
        #[command(flatten)]
        care: Care,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperationsCommand {
    /// List bulk operations, newest first
    List(Paging),
    /// Show the progress of an operation
    Show {
        /// Select the operation by id
        id: String,
    },
    /// Stop an operation; jobs that it changed already stay changed
    Abort {
        /// Select the operation by id
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Send a test notification to every route in the config, and print the results
    Test {
        /// Read this config file (default: rewheel.toml in the current folder, if it exists)
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    /// Check this store (default: the store in the config)
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<SecretUrl>,

    /// Read this config file (default: rewheel.toml in the current folder, if it exists)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_makes_sense() {
        Args::command().debug_assert();
    }
}
