//! Prints how fast Rewheel is compared with its peers, and checks the guarantees of each.

mod harness;
mod goal;
mod correctness;

mod breaker;
mod retry;
mod limiter;
mod budget;
mod bulkhead;
mod backoff;
mod pipeline;
mod layer;
mod client;
mod hedge;
mod cache;

mod machine;
mod table;
mod document;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::harness::{Group, Pace};

const USAGE: &str = "report [--quick] [--rounds N] [--only TEXT] [--json]";

/// The function of a module with comparisons.
type Compare = fn(&Pace) -> Vec<Group>;

const CHAPTERS: [(&str, Compare); 11] = [
    ("breaker", breaker::compare),
    ("retry", retry::compare),
    ("limiter", limiter::compare),
    ("budget", budget::compare),
    ("bulkhead", bulkhead::compare),
    ("backoff", backoff::compare),
    ("pipeline", pipeline::compare),
    ("tower", layer::compare),
    ("reqwest", client::compare),
    ("hedge", hedge::compare),
    ("cache", cache::compare),
];

#[derive(Debug, Default)]
struct Options {
    pace: Pace,
    only: Option<String>,
    json: bool,
}

fn main() -> Result<ExitCode> {
    let options = parse(std::env::args().skip(1))?;
    let machine = machine::describe();
    if !options.json {
        println!("{machine}\n{}", options.pace);
    }
    let mut groups = Vec::new();
    for (name, compare) in CHAPTERS {
        if options.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let chapter = compare(&options.pace);
        if !options.json {
            chapter.iter().for_each(table::print);
        }
        groups.extend(chapter);
    }
    if options.json {
        println!("{}", document::of(&machine, &groups)?);
    }
    // Times depend on the state of the machine. Guarantees do not.
    let is_wrong = groups.iter().any(Group::breaks_a_promise);
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => options.pace = Pace::quick(),
            "--json" => options.json = true,
            "--rounds" => {
                let rounds = args.next().context(USAGE)?;
                options.pace = options.pace.with_rounds(rounds.parse().context(USAGE)?);
            }
            "--only" => {
                let only = args.next().context(USAGE)?;
                if !CHAPTERS.iter().any(|(name, _)| *name == only) {
                    bail!("`{only}` is not one of {:?}", CHAPTERS.map(|(name, _)| name));
                }
                options.only = Some(only);
            }
            _ => bail!("`{arg}` is unknown: {USAGE}"),
        }
    }
    Ok(options)
}
