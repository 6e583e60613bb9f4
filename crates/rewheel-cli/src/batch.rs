//! Submits the jobs of a file, in batches.

use crate::cli_error::{CliError, exit};
use crate::client::Client;
use crate::output::Output;
use crate::screen::text;
use crate::submit;
use rewheel_core::Limits;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::Path;

/// Maximum size of a request: below the default of `server.body_bytes_max`.
const BYTES_MAX: usize = 24 * 1024 * 1024;

/// What to do if some jobs of a batch are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfRefused {
    /// Store none of the jobs in the request.
    StoreNone,
    /// Store the others.
    StoreOthers,
}

/// The response, with results as they were sent.
#[derive(Debug, Deserialize)]
struct Results {
    results: Vec<Box<RawValue>>,
}

/// Submits all jobs, and prints the id of each.
pub(crate) async fn run(
    file: &Path,
    if_refused: IfRefused,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let given =
        if file == Path::new("-") { "-".to_owned() } else { format!("@{}", file.display()) };
    let text = submit::read("batch", &given)?;
    let jobs = jobs(&text)?;
    let query: &[_] = match if_refused {
        IfRefused::StoreNone => &[],
        IfRefused::StoreOthers => &[("partial", "true")],
    };
    let mut done = Vec::with_capacity(jobs.len());
    let mut stopped = None;
    for request in requests(&jobs) {
        let body = format!(r#"{{"jobs":[{}]}}"#, join(request));
        match send(client, query, body).await {
            Ok(results) => done.extend(results),
            Err(trouble) if done.is_empty() => return Err(trouble),
            Err(trouble) => {
                stopped = Some(trouble);
                break;
            }
        }
    }
    finish(&done, jobs.len(), stopped, output)
}

async fn send(
    client: &Client,
    query: &[(&str, &str)],
    body: String,
) -> Result<Vec<Box<RawValue>>, CliError> {
    let answer = client.post_with(&["jobs", "batch"], query, body).await?;
    let results: Results = serde_json::from_str(&answer.text)
        .map_err(|error| CliError::new(exit::UNAVAILABLE, error))?;
    Ok(results.results)
}

/// Prints the ids, and fails if a job was refused or not sent.
fn finish(
    done: &[Box<RawValue>],
    total: usize,
    stopped: Option<CliError>,
    output: Output,
) -> Result<(), CliError> {
    let results: Vec<Value> =
        done.iter().map(|result| serde_json::from_str(result.get()).unwrap_or_default()).collect();
    let stored: Vec<String> = results
        .iter()
        .filter(|result| result["id"].is_string())
        .map(|result| text(result, "id"))
        .collect();
    if output.is_json() || !stored.is_empty() {
        output.answer(format!(r#"{{"results":[{}]}}"#, join(done)), || stored.join("\n"));
    }
    for (place, result) in results.iter().enumerate() {
        if !result["id"].is_string() && !output.is_json() {
            let detail = text(&result["problem"], "detail");
            output.note(format_args!("job {} of the batch: {detail}", place + 1));
        }
    }
    if stored.len() == total {
        return Ok(());
    }
    if let Some(trouble) = &stopped {
        output.trouble(trouble);
    }
    let message = format!("{} of {total} jobs were rejected", total - stored.len());
    Err(CliError::new(exit::PARTLY, anyhow::Error::msg(message)))
}

/// Reads the jobs without changing their text: one JSON array, or JSON documents one after the other.
fn jobs(text: &str) -> Result<Vec<Box<RawValue>>, CliError> {
    let wrong = |error: serde_json::Error| {
        CliError::usage(format!("the batch is not JSON: {error}")).hint(
            r#"write one job per line, such as {"kind":"mail","payload":{}}, or one array of jobs"#,
        )
    };
    let jobs: Vec<Box<RawValue>> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(wrong)?
    } else {
        let documents = serde_json::Deserializer::from_str(text).into_iter();
        documents.collect::<Result<_, _>>().map_err(wrong)?
    };
    if jobs.is_empty() {
        return Err(CliError::usage("the batch has no jobs".to_owned()));
    }
    Ok(jobs)
}

/// Splits jobs into requests of a size that a server accepts.
fn requests(jobs: &[Box<RawValue>]) -> Vec<&[Box<RawValue>]> {
    let mut requests = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, job) in jobs.iter().enumerate() {
        let size = job.get().len() + 1;
        if at - start == Limits::SUBMIT_MAX || (at > start && bytes + size > BYTES_MAX) {
            requests.push(&jobs[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += size;
    }
    requests.push(&jobs[start..]);
    requests
}

fn join(documents: &[Box<RawValue>]) -> String {
    documents.iter().map(|document| document.get()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, jobs, join, requests};

    #[test]
    fn jobs_are_read_from_lines_or_from_an_array_as_they_are_written() {
        let one = r#"{"kind":"mail","payload": 1.0}"#;
        for text in [format!("{one}\n\n{one}\r\n"), format!(" [{one} ,\n{one}]\n")] {
            assert_eq!(join(&jobs(&text).unwrap()), format!("{one},{one}"));
        }
        for text in ["", "[]", "{} x", "[{}", "[1] [2]"] {
            assert_eq!(jobs(text).unwrap_err().code, 2, "{text}");
        }
    }

    #[test]
    fn a_request_is_no_larger_than_a_server_takes() {
        let sizes = |text: &str| -> Vec<usize> {
            requests(&jobs(text).unwrap()).iter().map(|request| request.len()).collect()
        };
        assert_eq!(sizes(&"1 ".repeat(20_001)), [10_000, 10_000, 1]);
        assert_eq!(sizes(&"1 ".repeat(10_000)), [10_000]);
        let large = format!("\"{}\"", "a".repeat(BYTES_MAX / 2));
        assert_eq!(sizes(&format!("{large} {large} 1")), [1, 2]);
    }
}
