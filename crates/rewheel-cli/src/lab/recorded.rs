//! Replays the recorded attempts of a kind of jobs.

use crate::cli_error::{CliError, exit};
use crate::local;
use crate::output::Output;
use indicatif::{ProgressBar, ProgressStyle};
use rewheel::Retry;
use rewheel_core::store::{AttemptRecord, Filter, PageRequest, Store};
use rewheel_core::{Job, KindName, Limits, SecretUrl, State, Timestamp};
use rewheel_engine::KindSettings;
use rewheel_lab::{History, PastAttempt, PastEnd, PastJob, PastResult, Report, what_if};
use std::time::Duration;

/// A job with its recorded attempts.
type Read = (Job, Vec<AttemptRecord>);

/// The newest jobs are enough for a fit. Each of them needs a query.
const JOBS_MAX: usize = 20_000;

/// How far to look back by default.
const SINCE: Duration = Duration::from_secs(7 * 86_400);

pub(super) async fn report(
    url: &SecretUrl,
    kind: &str,
    since: Option<Duration>,
    seed: u64,
    output: Output,
) -> Result<Report, CliError> {
    let name: KindName = kind.parse().map_err(|error| CliError::new(exit::USAGE, error))?;
    let store = local::open_to_look(url).await?;
    let retry = retry_of(store.as_ref(), &name).await?;
    let read = read(store.as_ref(), &name, since.unwrap_or(SINCE), output).await?;
    store.close().await?;
    let start = read.iter().map(|(job, _)| job.created).min().unwrap_or(Timestamp::from_millis(0));
    let past = |(job, records): &Read| past(job, records, start, retry.attempts());
    let history = History::new(read.iter().map(past).collect())
        .map_err(|error| CliError::new(exit::FAILED, error))?;
    Ok(what_if(&history, kind, &retry, seed))
}

/// Returns the current retry of the kind.
async fn retry_of(store: &dyn Store, name: &KindName) -> Result<Retry, CliError> {
    let kinds = store.kinds().await?;
    let Some(kind) = kinds.iter().find(|kind| kind.name == *name) else {
        let message = format!("the store has no kind `{name}`");
        let names: Vec<_> = kinds.iter().map(|kind| kind.name.to_string()).collect();
        let error = CliError::new(exit::NOT_FOUND, anyhow::Error::msg(message));
        return Err(error.hint(format!("kinds of this store: {}", names.join(", "))));
    };
    let settings: KindSettings =
        serde_json::from_str(&kind.settings).map_err(|error| CliError::new(exit::FAILED, error))?;
    let retry = Retry::new(settings.backoff).attempts_max(settings.attempts_max.max(1));
    Ok(retry.retry_after_max(settings.retry_after_max))
}

/// Reads the jobs that were created in this time, the newest first.
async fn read(
    store: &dyn Store,
    kind: &KindName,
    since: Duration,
    output: Output,
) -> Result<Vec<Read>, CliError> {
    let now = store.now().await?;
    let from = Timestamp::from_millis(now.as_millis().saturating_sub(since.as_millis() as i64));
    let filter =
        Filter { kinds: vec![kind.clone()], created_after: Some(from), ..Filter::default() };
    let mut page = PageRequest::first(Limits::PAGE_MAX);
    // Hidden where stderr is no terminal.
    let progress = ProgressBar::no_length().with_style(
        ProgressStyle::with_template("{pos} jobs read").unwrap_or(ProgressStyle::default_bar()),
    );
    let mut read = Vec::new();
    loop {
        let found = store.list(&filter, &page).await?;
        for job in found.items {
            let records = store.attempts(job.id).await?;
            read.push((job, records));
            progress.inc(1);
        }
        match found.next {
            Some(_) if read.len() >= JOBS_MAX => {
                output.note(format!("only the newest {} jobs are used", read.len()));
                break;
            }
            Some(next) => page = PageRequest::behind(next, Limits::PAGE_MAX),
            None => break,
        }
    }
    progress.finish_and_clear();
    Ok(read)
}

fn past(job: &Job, records: &[AttemptRecord], start: Timestamp, attempts_max: u32) -> PastJob {
    let attempts_max = job.attempts_max.unwrap_or(attempts_max) + job.attempts_before;
    let attempt = |record| past_attempt(record, start, attempts_max);
    let end = match job.state() {
        State::Succeeded => PastEnd::Succeeded,
        State::Failed | State::Dead => PastEnd::GivenUp,
        State::Scheduled | State::Leased | State::Paused | State::Cancelled => PastEnd::Open,
    };
    PastJob {
        submitted: job.created.since(start),
        attempts: records.iter().filter_map(attempt).collect(),
        dropped: records.iter().map(|record| record.dropped).sum(),
        end,
    }
}

/// Returns what counts as an attempt; `None` if it snoozed, or was paused or cancelled.
fn past_attempt(
    record: &AttemptRecord,
    start: Timestamp,
    attempts_max: u32,
) -> Option<PastAttempt> {
    let result = match record.decision.as_str() {
        "succeed" => PastResult::Succeeded,
        "retry" => PastResult::Failed,
        // A job that was given up early was not to be repeated.
        "dead" | "fail" if record.attempt < attempts_max => PastResult::Stopped,
        "dead" | "fail" => PastResult::Failed,
        _ => return None,
    };
    let started = record.started.since(start);
    Some(PastAttempt { started, took: record.duration, result, delay: record.delay })
}
