//! Prints job state changes as the server reports them.

use crate::args::Events;
use crate::cli_error::{CliError, exit};
use crate::client::Client;
use crate::output::Output;
use crate::screen::{inline, text};
use serde_json::Value;
use std::time::Duration;

/// Without `--follow` the command ends after this long without an event.
const QUIET: Duration = Duration::from_secs(1);

/// Without `--follow` the command ends after this long, even if events keep coming.
const MOMENT: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: &Events, client: &Client, output: Output) -> Result<(), CliError> {
    if args.follow {
        return read(args, client, output).await;
    }
    match tokio::time::timeout(MOMENT, read(args, client, output)).await {
        Ok(read) => read,
        Err(_) => Ok(()),
    }
}

async fn read(args: &Events, client: &Client, output: Output) -> Result<(), CliError> {
    if args.limit == Some(0) {
        return Ok(());
    }
    let mut query: Vec<(&str, &str)> =
        args.kind.iter().map(|kind| ("kind", kind.as_str())).collect();
    query.extend(args.job.as_deref().map(|job| ("job", job)));
    // From the oldest event that the server keeps, unless only new ones are wanted.
    let after = args.after.or((!args.follow).then_some(0)).map(|after| after.to_string());
    query.extend(after.as_deref().map(|after| ("after", after)));
    let mut response = client.watch(&["events"], &query).await?;
    let (mut stream, mut printed) = (Stream::default(), 0);
    loop {
        let chunk = response.chunk();
        let chunk = if args.follow {
            chunk.await
        } else {
            match tokio::time::timeout(QUIET, chunk).await {
                Ok(chunk) => chunk,
                Err(_) => return Ok(()),
            }
        };
        let Some(bytes) = chunk.map_err(|error| client.unreachable(error))? else { break };
        for event in stream.take(&bytes) {
            match event.name.as_str() {
                "job" => {
                    print(&event, output);
                    printed += 1;
                }
                // Missed events are only reported to users who asked for them.
                "missed" if args.follow || args.after.is_some() => missed(&event, output),
                _ => {}
            }
            if Some(printed) == args.limit {
                return Ok(());
            }
        }
    }
    if !args.follow {
        return Ok(());
    }
    let message = "the server closed the event stream";
    let trouble = CliError::new(exit::UNAVAILABLE, anyhow::Error::msg(message));
    Err(match &stream.last {
        Some(last) => trouble.hint(format!("continue with --after {}", inline(last))),
        None => trouble,
    })
}

fn print(event: &Event, output: Output) {
    output.answer(&event.data, || {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let field = |name: &str| text(&data, name);
        let from = if data["from"].is_null() { "new".to_owned() } else { field("from") };
        let change = format!("{from} -> {}", field("to"));
        format!("{}  {}  {change:<22}  {}", field("at"), field("job"), field("kind"))
    });
}

fn missed(event: &Event, output: Output) {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    output.note(format_args!(
        "events up to and including {} are no longer available",
        text(&data, "up_to")
    ));
}

/// An event of the stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    name: String,
    data: String,
}

/// Parses events from the bytes that arrive.
#[derive(Debug, Default)]
struct Stream {
    bytes: Vec<u8>,
    event: Event,
    /// The number of the latest event.
    last: Option<String>,
}

impl Stream {
    /// Takes more bytes, and returns the completed events.
    fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.bytes.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                events.extend((!event.data.is_empty()).then_some(event));
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => self.event.name = value.to_owned(),
                "id" => self.last = Some(value.to_owned()),
                "data" if self.event.data.is_empty() => self.event.data = value.to_owned(),
                "data" => self.event.data.push_str(&format!("\n{value}")),
                // A comment, which only keeps the connection alive.
                _ => {}
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::Stream;

    #[test]
    fn events_are_put_together_wherever_the_bytes_are_cut() {
        let text = ":\n\nevent: job\nid: 7\ndata: {\"to\":\"déad\"}\n\nevent:missed\r\ndata: a\r\ndata: b\r\n\r\nevent: job\n";
        for size in [1, 2, 3, 7, 1_000] {
            let mut stream = Stream::default();
            let events: Vec<_> =
                text.as_bytes().chunks(size).flat_map(|bytes| stream.take(bytes)).collect();
            let found: Vec<_> =
                events.iter().map(|event| (event.name.as_str(), event.data.as_str())).collect();
            assert_eq!(found, [("job", "{\"to\":\"déad\"}"), ("missed", "a\nb")], "{size}");
            assert_eq!(stream.last.as_deref(), Some("7"));
        }
    }
}
