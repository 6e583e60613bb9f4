//! Runs Rewheel and its peers in turns, round by round.

use anyhow::{Result, bail};
use std::time::Duration;

use crate::Options;
use crate::peers::{self, Program};
use crate::queue::load::{Figures, Load};
use crate::server::Server;
use crate::{machine, raw, report, subject};

/// A queue that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub name: &'static str,
    pub part: Part,
}

/// The role of a subject in the comparison.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Limit,
    Ours { keep: Duration, target: Targets },
    Peer(Program),
}

/// How many times as fast as the best peer.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    pub submit: Option<f64>,
    pub drain: Option<f64>,
    /// By how many milliseconds the median latency may exceed two commits of the same round.
    pub over_commits: Option<f64>,
}

const SUBJECTS: [Subject; 7] = [
    Subject { name: "raw limit", part: Part::Limit },
    Subject {
        name: "rewheel, kept",
        part: Part::Ours {
            keep: Duration::from_secs(7 * 24 * 3_600),
            target: Targets { submit: Some(2.5), drain: Some(2.2), over_commits: Some(0.5) },
        },
    },
    Subject {
        name: "rewheel, not kept",
        part: Part::Ours {
            keep: Duration::ZERO,
            target: Targets { submit: Some(2.5), drain: Some(3.5), over_commits: Some(0.5) },
        },
    },
    Subject { name: "graphile-worker", part: Part::Peer(Program::Node("graphile.mjs")) },
    Subject { name: "pg-boss", part: Part::Peer(Program::Node("pgboss.mjs")) },
    Subject { name: "apalis-postgres", part: Part::Peer(Program::Rust("apalis")) },
    Subject { name: "awa", part: Part::Peer(Program::Rust("awa")) },
];

/// The results of a subject, round by round. A failed round is empty.
#[derive(Debug)]
pub struct Course {
    pub subject: Subject,
    pub rounds: Vec<Option<Figures>>,
}

pub async fn run(server: &Server, load: &Load, options: &Options) -> Result<()> {
    let mut courses = Vec::new();
    for subject in chosen(&options.only)? {
        if let Part::Peer(program) = subject.part
            && let Err(error) = peers::prepare(program).await
        {
            eprintln!("not measured: {}: {error:#}", subject.name);
            continue;
        }
        courses.push(Course { subject, rounds: Vec::with_capacity(options.rounds) });
    }
    for round in 0..options.rounds {
        // The order rotates, so that no subject always runs after the same one.
        for nth in 0..courses.len() {
            let at = (round + nth) % courses.len();
            let course = &mut courses[at];
            server.checkpoint().await;
            let figures = measure(server, load, course.subject).await;
            match &figures {
                Ok(figures) => eprintln!("round {round}: {}: {figures:?}", course.subject.name),
                Err(error) => eprintln!("round {round}: {} failed: {error:#}", course.subject.name),
            }
            course.rounds.push(figures.ok());
        }
    }
    let report = report::Report::new(machine::describe(), server.about.clone(), load, &courses);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}

async fn measure(server: &Server, load: &Load, subject: Subject) -> Result<Figures> {
    match subject.part {
        Part::Limit => raw::round(server, load).await,
        Part::Ours { keep, .. } => subject::round(server, load, keep).await,
        Part::Peer(program) => peers::round(server, load, program).await,
    }
}

fn chosen(only: &[String]) -> Result<Vec<Subject>> {
    if let Some(unknown) = only.iter().find(|only| !SUBJECTS.iter().any(|s| s.name == **only)) {
        bail!("`{unknown}` is not one of {:?}", SUBJECTS.map(|subject| subject.name));
    }
    let is_chosen = |subject: &Subject| only.is_empty() || only.iter().any(|o| o == subject.name);
    Ok(SUBJECTS.into_iter().filter(is_chosen).collect())
}
