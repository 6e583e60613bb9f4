//! Prints how fast Rewheel is on PostgreSQL, compared with other queues on the same server.

mod server;
#[path = "../../queue/mod.rs"]
mod queue;
mod raw;
mod subject;
mod peers;
mod compare;
mod report;
mod counters;
mod pages;
mod pinned;
mod steady;
mod trickle;
mod readers;
mod soak;
mod idle;
#[path = "../../machine.rs"]
mod machine;

use anyhow::{Context, Result, bail};

use crate::queue::load::Load;
use crate::server::Server;
use crate::steady::Pace;
use std::time::Duration;

/// How long finished jobs are kept by default, in seconds.
const WEEK: u64 = 7 * 24 * 3_600;

const USAGE: &str = "postgres [pages|pinned|trickle|readers|soak|idle] URL [--rounds N] [--jobs N] [--payload-bytes N] \
                     [--samples N] [--rate N] [--seconds N] [--keep-seconds N] [--out PATH] [--only SUBJECT]... [--json]

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
    /// Jobs per second and duration of measurements at a steady rate; with their own defaults.
    rate: Option<usize>,
    seconds: Option<u64>,
    keep_seconds: Option<u64>,
    /// Where a soak writes its samples, without an ending.
    out: String,
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
    Readers,
    Soak,
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
    let pace = |rate, keep| Pace {
        rate: options.rate.unwrap_or(rate),
        payload_bytes: options.payload_bytes,
        keep: Duration::from_secs(options.keep_seconds.unwrap_or(keep)),
    };
    let lasts = |seconds| Duration::from_secs(options.seconds.unwrap_or(seconds));
    if options.what == What::SubmitSide {
        return queue::subject::submit_side(&options.url, &load(0)).await;
    }
    let server = Server::connect(&options.url).await?;
    match options.what {
        What::Compare => compare::run(&server, &load(100_000), options).await,
        What::Pages => pages::print(&server, &load(1_000_000)).await,
        What::Pinned => pinned::print(&server, &load(1_000_000)).await,
        What::Trickle => trickle::print(&server, pace(800, WEEK), lasts(240)).await,
        What::Readers => readers::print(&server, pace(800, WEEK), lasts(180)).await,
        What::Soak => soak::print(&server, pace(5_000, 300), lasts(1_800), &options.out).await,
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
        Some("readers") => What::Readers,
        Some("soak") => What::Soak,
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
        rate: None,
        seconds: None,
        keep_seconds: None,
        out: "soak".to_owned(),
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
            "--rate" => options.rate = Some(value()?.parse().context(USAGE)?),
            "--seconds" => options.seconds = Some(value()?.parse().context(USAGE)?),
            "--keep-seconds" => options.keep_seconds = Some(value()?.parse().context(USAGE)?),
            "--out" => options.out = value()?,
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
