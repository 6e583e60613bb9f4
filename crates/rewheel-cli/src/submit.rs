//! Submits a job through a server or directly into a store.

use crate::args::Submit;
use crate::cli_error::{CliError, exit};
use crate::client::Client;
use crate::job_result;
use crate::local;
use crate::output::Output;
use crate::screen::text;
use rewheel::Random;
use rewheel_core::store::{Insert, Inserted, Sent, Store, StoreError};
use rewheel_core::{JobId, KindName, SecretUrl};
use rewheel_engine::KindSettings;
use rewheel_server::job_document::JobDocument;
use rewheel_server::submit::{check_ceilings, check_duplicates, parse, refused};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::Read;

/// The body of `POST /v1/jobs`.
#[derive(Debug, Serialize)]
struct Body<'a> {
    kind: &'a str,
    payload: Box<RawValue>,
    key: Option<&'a str>,
    unique_until: Option<&'a str>,
    on_duplicate: Option<&'a str>,
    debounce: Option<DebounceBody<'a>>,
    tenant: Option<&'a str>,
    shard_key: Option<&'a str>,
    group_key: Option<&'a str>,
    priority: Option<i64>,
    delay: Option<&'a str>,
    due: Option<&'a str>,
    deadline: Option<&'a str>,
    attempts_max: Option<i64>,
    attempt_timeout: Option<&'a str>,
    backoff: Option<&'a str>,
}

/// A debounce, with its limit if there is one.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum DebounceBody<'a> {
    Delay(&'a str),
    Both { delay: &'a str, max: &'a str },
}

impl<'a> DebounceBody<'a> {
    fn of(args: &'a Submit) -> Option<DebounceBody<'a>> {
        let delay = args.debounce.as_deref()?;
        Some(match args.debounce_max.as_deref() {
            Some(max) => DebounceBody::Both { delay, max },
            None => DebounceBody::Delay(delay),
        })
    }
}

/// What is said beside the id of a job that existed already.
fn say_known(output: Output, replaced: bool) {
    output.note(if replaced {
        "a job with this key was waiting; it has the new payload and settings now, and keeps its id"
    } else {
        "a job with this key already exists: this is its id"
    });
}

/// Submits through a server.
pub(crate) async fn remotely(
    args: &Submit,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let wait = args.wait.as_deref().map(job_result::parse_wait).transpose()?;
    let answer = client.post(&["jobs"], body(args)?).await?;
    let is_known = answer.value.get("duplicate") == Some(&Value::Bool(true));
    let id = text(&answer.value, "id");
    // With --json, the job is printed once: as it is after the wait.
    if wait.is_none() || !output.is_json() {
        output.answer(answer.text, || id.clone());
    }
    if is_known {
        say_known(output, answer.value.get("replaced") == Some(&Value::Bool(true)));
    }
    match wait {
        Some(time_max) => job_result::wait(&id, time_max, client, output).await,
        None => Ok(()),
    }
}

/// Submits directly into a store. A server or engine that uses this store finds the job at its next poll.
pub(crate) async fn locally(args: &Submit, output: Output) -> Result<(), CliError> {
    let config = local::config(None)?;
    let text = body(args)?;
    let url = args.store.clone().unwrap_or_else(|| SecretUrl::new(&config.store.url));
    let store = local::open(&url).await?;
    let id = JobId::new(store.now().await?, &Random::thread());
    let job = parse(&text, id, config.engine.payload_bytes_max)?;
    check_duplicates("", &job)?;
    if let Some(kind) = settings(store.as_ref(), &job.kind).await? {
        check_ceilings("", &job, &kind)?;
    }
    let jobs = [job];
    let answers = match store.insert(&Insert::new(&jobs)).await {
        Err(StoreError::Ambiguous(_)) => {
            store.insert(&Insert { sent: Sent::Again, ..Insert::new(&jobs) }).await?
        }
        answers => answers?,
    };
    let (known, replaced) = match answers.into_iter().next() {
        Some(Inserted::Created { .. }) => (id, false),
        Some(Inserted::Duplicate { job, .. }) => (job, false),
        Some(Inserted::Replaced { job, .. }) => (job, true),
        Some(Inserted::Refused(why)) => return Err(refused("", &jobs[0], &why).into()),
        Some(Inserted::LeftOut) | None => {
            let error = anyhow::Error::msg("the store returned no result for the job");
            return Err(CliError::new(exit::FAILED, error));
        }
    };
    let document = document(store.as_ref(), known).await?;
    let document =
        document.map(|document| document.with_duplicate(known != id).with_replaced(replaced));
    let text =
        serde_json::to_string(&document).map_err(|error| CliError::new(exit::FAILED, error))?;
    output.answer(text, || known.to_string());
    if known != id {
        say_known(output, replaced);
    }
    Ok(store.close().await?)
}

async fn document(store: &dyn Store, id: JobId) -> Result<Option<JobDocument>, CliError> {
    let Some(job) = store.get(id).await? else { return Ok(None) };
    let settings = settings(store, &job.lane.kind).await?.unwrap_or_default();
    let document = JobDocument::new(&job, &settings, store.now().await?);
    Ok(Some(document.with_history(&job, &store.attempts(id).await?, &[])))
}

async fn settings(store: &dyn Store, name: &KindName) -> Result<Option<KindSettings>, CliError> {
    let kinds = store.kinds().await?;
    let kind = kinds.iter().find(|kind| kind.name == *name);
    Ok(kind.and_then(|kind| serde_json::from_str(&kind.settings).ok()))
}

fn body(args: &Submit) -> Result<String, CliError> {
    let body = Body {
        kind: args.kind.as_deref().unwrap_or_default(),
        payload: json("payload", args.payload.as_deref().unwrap_or_default())?,
        key: args.key.as_deref(),
        unique_until: args.unique_until.as_deref(),
        on_duplicate: args.on_duplicate.as_deref(),
        debounce: DebounceBody::of(args),
        tenant: args.tenant.as_deref(),
        shard_key: args.shard_key.as_deref(),
        group_key: args.group_key.as_deref(),
        priority: args.priority,
        delay: args.delay.as_deref(),
        due: args.due.as_deref(),
        deadline: args.deadline.as_deref(),
        attempts_max: args.attempts_max,
        attempt_timeout: args.attempt_timeout.as_deref(),
        backoff: args.backoff.as_deref(),
    };
    serde_json::to_string(&body).map_err(|error| CliError::new(exit::FAILED, error))
}

/// Reads JSON text unchanged: the argument itself, a file, or stdin. `what` is the name of this input in errors.
pub(crate) fn json(what: &str, given: &str) -> Result<Box<RawValue>, CliError> {
    let text =
        if given == "-" || given.starts_with('@') { read(what, given)? } else { given.to_owned() };
    RawValue::from_string(text.trim().to_owned()).map_err(|error| {
        let trouble = CliError::usage(format!("the {what} is not JSON: {error}"));
        match what {
            "payload" => {
                trouble.hint(r#"a JSON string needs quotes: rewheel submit KIND '"text"'"#)
            }
            _ => trouble,
        }
    })
}

/// Reads a file given as `@FILE`, or stdin for `-`.
pub(crate) fn read(what: &str, given: &str) -> Result<String, CliError> {
    let unreadable = |place: &str, error: std::io::Error| {
        CliError::usage(format!("the {what} cannot be read from {place}: {error}"))
    };
    if given == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        return read.map(|_| text).map_err(|error| unreadable("stdin", error));
    }
    let path = given.strip_prefix('@').unwrap_or(given);
    std::fs::read_to_string(path).map_err(|error| unreadable(path, error))
}
