//! Prints how fast Rewheel is on Redis, compared with a minimal queue and with BullMQ on the same server.

#[path = "../../queue/mod.rs"]
mod queue;
mod server;
mod raw;
mod subject;
mod peer;
mod report;
#[path = "../../machine.rs"]
mod machine;

use anyhow::{Context, Result, bail};
use rewheel::seconds;
use std::time::Duration;

use crate::queue::load::{Figures, Load};
use crate::report::Row;
use crate::server::Server;

const USAGE: &str = "redis URL [--rounds N] [--jobs N] [--payload-bytes N] [--samples N] [--only SUBJECT]...

URL is that of a server with an empty database, such as redis://localhost:6379/9. The database is emptied before each round.";

/// How long succeeded jobs are kept where they are kept.
const KEPT: Duration = seconds(86_400);

/// The options of the command line.
#[derive(Debug)]
struct Options {
    url: String,
    rounds: usize,
    load: Load,
    only: Vec<String>,
    is_submit_side: bool,
}

/// What is measured, in the order of each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Raw,
    Dropped,
    Kept,
    BullMq,
    BullMqKept,
}

const SUBJECTS: [(Subject, &str); 5] = [
    (Subject::Raw, "raw"),
    (Subject::Dropped, "rewheel, dropped"),
    (Subject::Kept, "rewheel, kept"),
    (Subject::BullMq, "bullmq, dropped"),
    (Subject::BullMqKept, "bullmq, kept"),
];

fn main() -> Result<()> {
    let options = parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> Result<()> {
    if options.is_submit_side {
        return queue::subject::submit_side(&options.url, &options.load).await;
    }
    let server = Server::connect(&options.url).await?;
    let is_wanted = |name: &str| {
        options.only.is_empty() || options.only.iter().any(|only| name.contains(only.as_str()))
    };
    let wanted = SUBJECTS.iter().filter(|(_, name)| is_wanted(name));
    let mut rows: Vec<Row> = wanted.map(|(subject, name)| Row::new(*subject, name)).collect();
    for round in 0..options.rounds {
        eprintln!("round {} of {}", round + 1, options.rounds);
        for row in &mut rows {
            server.empty().await?;
            match measure(&server, &options.load, row.subject).await {
                Ok(figures) => row.rounds.push(figures),
                Err(error) => eprintln!("{}: {error:#}", row.name),
            }
        }
    }
    server.empty().await?;
    report::print(&server.about, &options.load, &rows);
    Ok(())
}

async fn measure(server: &Server, load: &Load, subject: Subject) -> Result<Figures> {
    match subject {
        Subject::Raw => raw::round(server, load).await,
        Subject::Dropped => subject::round(server, load, Duration::ZERO).await,
        Subject::Kept => subject::round(server, load, KEPT).await,
        Subject::BullMq => peer::round(server, load, "drop").await,
        Subject::BullMqKept => peer::round(server, load, "keep").await,
    }
}

fn parse(args: impl Iterator<Item = String>) -> Result<Options> {
    let mut args = args.peekable();
    let is_submit_side = args.next_if(|arg| arg == "submit-side").is_some();
    let load = Load { jobs: 100_000, payload_bytes: 200, samples: 300 };
    let mut options =
        Options { url: String::new(), rounds: 5, load, only: Vec::new(), is_submit_side };
    while let Some(arg) = args.next() {
        let mut value = || args.next().context(USAGE);
        match arg.as_str() {
            "--rounds" => options.rounds = value()?.parse().context(USAGE)?,
            "--jobs" => options.load.jobs = value()?.parse().context(USAGE)?,
            "--payload-bytes" => options.load.payload_bytes = value()?.parse().context(USAGE)?,
            "--samples" => options.load.samples = value()?.parse().context(USAGE)?,
            "--only" => options.only.push(value()?),
            url if url.starts_with("redis") && options.url.is_empty() => options.url = arg,
            _ => bail!("`{arg}` is unknown: {USAGE}"),
        }
    }
    if options.url.is_empty() || options.rounds == 0 || options.load.jobs == 0 {
        bail!("{USAGE}");
    }
    Ok(options)
}
