//! What the command line may say.

use crate::bench::BenchArgs;
use crate::lab::LabArgs;
use crate::token::TokenCommand;
use clap::{Args as ClapArgs, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A durable retry engine: jobs that are tried until they succeed.
#[derive(Debug, Parser)]
#[command(name = "rewheel", version, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// The server to talk to
    #[arg(
        long,
        global = true,
        env = "REWHEEL_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:7420"
    )]
    pub(crate) server: String,

    #[command(flatten)]
    pub(crate) credentials: Credentials,

    /// Print JSON, the same documents as the REST interface
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// How client and server know each other.
#[derive(Debug, ClapArgs)]
pub(crate) struct Credentials {
    /// The token to show to the server; REWHEEL_TOKEN_FILE names a file that has it
    #[arg(long, global = true, env = "REWHEEL_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// Also trust a server that a certificate of this file vouches for
    #[arg(long, global = true, env = "REWHEEL_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run jobs, and answer REST
    Serve(Serve),
    /// Submit a job, and print its id
    Submit(Box<Submit>),
    /// Look at jobs, and change them
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// List the kinds, and how many jobs each has
    Kinds,
    /// List who runs jobs
    Holders,
    /// Show how it goes: jobs by state, places, what was decided
    Stats,
    /// Watch how it goes, second by second
    Top {
        /// How often to look
        #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = rewheel::duration::parse)]
        every: std::time::Duration,
    },
    /// Look at dead letters, and put them back to work
    #[command(subcommand)]
    Dead(DeadCommand),
    /// List what fails, by its cause, and change all jobs of a cause
    Incidents {
        #[command(subcommand)]
        command: Option<IncidentsCommand>,
    },
    /// Look at changes of many jobs
    #[command(subcommand)]
    Operations(OperationsCommand),
    /// Say who may do what over the wire
    #[command(subcommand)]
    Token(TokenCommand),
    /// Check a store: whether every job is accounted for, and what weakens its promises
    Doctor(Doctor),
    /// Try out who is told what
    #[command(subcommand)]
    Notify(NotifyCommand),
    /// Look at the config as a server would
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print what makes a shell complete these commands: `source <(rewheel completions bash)`
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Try retry policies out on a dependency that fails: what they do to it, and when it is well again
    Lab(Box<LabArgs>),
    /// Measure this machine
    Bench(Box<BenchArgs>),
    /// Bring the tables of a store up to date
    Migrate {
        /// The store: sqlite://rewheel.db
        #[arg(long, value_name = "URL")]
        store: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with it, by key and line
    Check(ConfigFile),
    /// Show every setting that is in force, and from where; secrets are hidden
    Show(ConfigFile),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigFile {
    /// The config file; rewheel.toml of this folder if there is one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Serve {
    /// The config file; rewheel.toml of this folder if there is one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Where jobs are kept: sqlite://rewheel.db
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// The address to listen on: 127.0.0.1:7420
    #[arg(long, value_name = "ADDRESS", value_parser = rewheel_server::config::parse_listen)]
    pub(crate) listen: Option<SocketAddr>,

    /// Also run a flaky callee, and jobs that are retried before your eyes
    #[arg(long)]
    pub(crate) demo: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Submit {
    /// What sort of work it is
    pub(crate) kind: String,

    /// The input as JSON: itself, @file, or - for what is piped in
    #[arg(allow_negative_numbers = true)]
    pub(crate) payload: String,

    /// What makes submitting it again harmless
    #[arg(long)]
    pub(crate) key: Option<String>,

    /// On whose behalf
    #[arg(long)]
    pub(crate) tenant: Option<String>,

    /// What decides, with the tenant, on which shard it lives
    #[arg(long)]
    pub(crate) shard_key: Option<String>,

    /// From 0 to 9; 9 runs first
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) priority: Option<i64>,

    /// How long to wait first: 1h30m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) delay: Option<String>,

    /// When it may first run: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) due: Option<String>,

    /// When nobody will want it any more
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,

    /// How many attempts it gets
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) attempts_max: Option<i64>,

    /// How long one attempt may take
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) attempt_timeout: Option<String>,

    /// How long to wait between attempts: "exponential 100ms x2 max 30s jitter full"
    #[arg(long)]
    pub(crate) backoff: Option<String>,

    /// Write into this store, without a server
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List jobs, the newest first
    List(Box<List>),
    /// Show one job with its attempts, and what people did to it
    Show {
        /// Its id
        id: String,
    },
    /// Stop jobs
    Cancel {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Let jobs run now; a dead letter goes back to work
    Retry {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Let jobs wait
    Pause {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Let jobs go on, when they are due
    Resume {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Change what a job says; one that runs must be paused first
    Edit(Box<Edit>),
}

/// Which jobs.
#[derive(Debug, ClapArgs)]
pub(crate) struct Which {
    /// Of this kind; may be there several times
    #[arg(long)]
    pub(crate) kind: Vec<String>,

    /// On this behalf
    #[arg(long)]
    pub(crate) tenant: Option<String>,

    /// With a last failure of this category
    #[arg(long)]
    pub(crate) category: Option<String>,

    /// With this text in the id, the key or the last failure
    #[arg(long, value_name = "TEXT")]
    pub(crate) q: Option<String>,

    /// Due at this time or later
    #[arg(long, value_name = "TIME")]
    pub(crate) due_after: Option<String>,

    /// Due before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) due_before: Option<String>,

    /// Submitted at this time or later
    #[arg(long, value_name = "TIME")]
    pub(crate) created_after: Option<String>,

    /// Submitted before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) created_before: Option<String>,
}

impl Which {
    /// The conditions that can be there once, by their names.
    pub(crate) fn single(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("tenant", &self.tenant),
            ("category", &self.category),
            ("q", &self.q),
            ("due_after", &self.due_after),
            ("due_before", &self.due_before),
            ("created_after", &self.created_after),
            ("created_before", &self.created_before),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// How much of a list.
#[derive(Debug, ClapArgs)]
pub(crate) struct Paging {
    /// How many at most: 1 to 1000
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<String>,

    /// Where the last page ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct List {
    /// In this state; may be there several times
    #[arg(long)]
    pub(crate) state: Vec<String>,

    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) paging: Paging,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Edit {
    /// Its id
    pub(crate) id: String,

    /// Another input as JSON: itself, @file, or - for what is piped in
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) payload: Option<String>,

    /// From 0 to 9; 9 runs first
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) priority: Option<i64>,

    /// When it may next run: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) due: Option<String>,

    /// When nobody will want it any more; `none` takes the deadline away
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,

    /// How many attempts it gets
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) attempts_max: Option<i64>,

    /// Only if this is still its version
    #[arg(long, value_name = "NUMBER")]
    pub(crate) if_version: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// List dead letters, the newest first
    List(Box<DeadList>),
    /// Put dead letters back to work: those named, or those of a filter
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
    /// Their ids; without any, say which by the options
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) which: Which,

    /// Of this incident
    #[arg(long, value_name = "ID")]
    pub(crate) incident: Option<String>,

    /// Every dead letter
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) care: Care,
}

/// How carefully many jobs are redriven.
#[derive(Debug, ClapArgs)]
pub(crate) struct Care {
    /// A few first, then more, each step after the last went well: 1,10,100
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) canary: Vec<u32>,

    /// A new deadline: dead letters whose own has passed need one
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,

    #[command(flatten)]
    pub(crate) pace: Pace,
}

/// How many jobs are changed by one order.
#[derive(Debug, ClapArgs)]
pub(crate) struct Pace {
    /// Say what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// How many at most in a time: 100/s
    #[arg(long)]
    pub(crate) rate: Option<String>,

    /// Print the operation's id, and do not wait for its end
    #[arg(long)]
    pub(crate) detach: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentsCommand {
    /// List what fails, by its cause: the worst first
    List,
    /// Pause the jobs of an incident that wait for their next attempt
    Hold {
        /// Its id
        id: String,
        #[command(flatten)]
        pace: Pace,
    },
    /// Resume the jobs of an incident that are paused
    Release {
        /// Its id
        id: String,
        #[command(flatten)]
        pace: Pace,
    },
    /// Put the dead letters of an incident back to work
    Redrive {
        /// Its id
        id: String,
        #[command(flatten)]
        care: Care,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperationsCommand {
    /// List changes of many jobs, the newest first
    List(Paging),
    /// Show how far one is
    Show {
        /// Its id
        id: String,
    },
    /// Stop one where it is
    Abort {
        /// Its id
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Send a test through every route of the config, and print what happened to each
    Test {
        /// The config file; rewheel.toml of this folder if there is one
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    /// The store; that of the config if not set
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// The config file; rewheel.toml of this folder if there is one
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
