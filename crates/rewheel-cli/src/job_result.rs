//! Waits for the end of a job, and prints its result.

use crate::cli_error::{CliError, exit};
use crate::client::Client;
use crate::output::Output;
use crate::screen::text;
use rewheel::{Clock, duration};
use rewheel_server::job_explanation;
use std::time::Duration;

/// Longest wait of one request: shorter than the timeouts of this client and of proxies.
const PIECE: Duration = Duration::from_secs(30);

/// Parses `--wait`.
pub(crate) fn parse_wait(given: &str) -> Result<Duration, CliError> {
    duration::parse(given).map_err(|error| CliError::usage(format!("--wait {given}: {error}")))
}

/// Waits until a job has ended, at most this long. A job that has not succeeded by then is an error.
pub(crate) async fn wait(
    id: &str,
    time_max: Duration,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let clock = Clock::system();
    let until = clock.now().plus(time_max);
    let job = loop {
        let left = until.since(clock.now());
        let piece = duration::text(whole_millis(left.min(PIECE))).to_string();
        let job = client.get(&["jobs", id], &[("wait", &piece)]).await?;
        if !job.value["finished"].is_null() || left <= PIECE {
            break job;
        }
    };
    if output.is_json() {
        output.answer(&job.text, String::new);
    }
    let explanation = job_explanation::sentence(&job.value);
    match text(&job.value, "state").as_str() {
        "succeeded" => {
            output.note(explanation);
            Ok(())
        }
        "failed" | "dead" | "cancelled" => {
            let message = format!("job {id} did not succeed: {explanation}");
            Err(CliError::new(exit::FAILED, anyhow::Error::msg(message)))
        }
        _ => {
            let time_max = duration::text(time_max);
            let message = format!("job {id} has not ended within {time_max}: {explanation}");
            let hint = format!("the job continues: see `rewheel jobs show {id}`");
            Err(CliError::new(exit::FAILED, anyhow::Error::msg(message)).hint(hint))
        }
    }
}

/// Durations on the wire have no smaller unit.
fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Prints the bytes of a result.
pub(crate) async fn print(id: &str, client: &Client, output: Output) -> Result<(), CliError> {
    output.bytes(&client.bytes(&["jobs", id, "result"]).await?);
    Ok(())
}
