//! Prints how fast Rewheel is on PostgreSQL, compared with other queues on the same server.

mod server;
mod load;
mod raw;
mod subject;
mod peers;
mod compare;
mod report;
mod counters;
mod pages;
mod pinned;
mod trickle;
mod idle;
#[path = "../../machine.rs"]
mod machine;

use anyhow::{Context, Result, bail};

use crate::load::Load;
use crate::server::Server;

const USAGE: &str = "postgres [pages|pinned|trickle|idle] URL [--rounds N] [--jobs N] [--payload-bytes N] \
                     [--samples N] [--only SUBJECT]... [--json]

URL is that of a server where databases may be made, such as postgres://postgres@localhost/postgres.";

/// The options of the command line.
#[derive(Debug)]
struct Options {
    what: What,
    url: String,
    rounds: usize,
    /// Defaults to the number that the measurement is designed for.
    jobs: Option<usize>,
    payload_bytes: usize,
    samples: usize,
    only: Vec<String>,
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Compare,
    Pages,
    Pinned,
    /// As `Pinned`, for an engine that keeps up.
    Trickle,
    Idle,
    /// The process that only submits, so that jobs come from another process.
    SubmitSide,
}

fn main() -> Result<()> {
    let options = parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> Result<()> {
    let load = |jobs| Load {
        jobs: options.jobs.unwrap_or(jobs),
        payload_bytes: options.payload_bytes,
        samples: options.samples,
    };
    if options.what == What::SubmitSide {
        return subject::submit_side(&options.url, &load(0)).await;
    }
    let server = Server::connect(&options.url).await?;
    match options.what {
        What::Compare => compare::run(&server, &load(100_000), options).await,
        What::Pages => pages::print(&server, &load(1_000_000)).await,
        What::Pinned => pinned::print(&server, &load(1_000_000)).await,
        What::Trickle => trickle::print(&server, &load(600 * trickle::RATE)).await,
        What::Idle => idle::print(&server).await,
        What::SubmitSide => Ok(()),
    }
}

fn parse(args: impl Iterator<Item = String>) -> Result<Options> {
    let mut args = args.peekable();
    let what = match args.peek().map(String::as_str) {
        Some("pages") => What::Pages,
        Some("pinned") => What::Pinned,
        Some("trickle") => What::Trickle,
        Some("idle") => What::Idle,
        Some("submit-side") => What::SubmitSide,
        Some(_) | None => What::Compare,
    };
    if what != What::Compare {
        args.next();
    }
    let mut options = Options {
        what,
        url: String::new(),
        rounds: 5,
        jobs: None,
        payload_bytes: 200,
        samples: 300,
        only: Vec::new(),
        json: false,
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().context(USAGE);
        match arg.as_str() {
            "--rounds" => options.rounds = value()?.parse().context(USAGE)?,
            "--jobs" => options.jobs = Some(value()?.parse().context(USAGE)?),
            "--payload-bytes" => options.payload_bytes = value()?.parse().context(USAGE)?,
            "--samples" => options.samples = value()?.parse().context(USAGE)?,
            "--only" => options.only.push(value()?),
            "--json" => options.json = true,
            url if url.starts_with("postgres") && options.url.is_empty() => options.url = arg,
            _ => bail!("`{arg}` is unknown: {USAGE}"),
        }
    }
    if options.url.is_empty() || options.rounds == 0 || options.jobs == Some(0) {
        bail!("{USAGE}");
    }
    Ok(options)
}
