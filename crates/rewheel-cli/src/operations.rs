//! Starts bulk operations and follows their progress.

use crate::args::{Care, Pace, Paging};
use crate::cli_error::{CliError, exit};
use crate::client::{Client, Document};
use crate::confirm::{self, Asking, Consent};
use crate::output::Output;
use crate::pages;
use crate::screen::{inline, text};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The polling interval for progress.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// A change of many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Cancel,
    Pause,
    Resume,
    Retry,
    Redrive,
}

impl Verb {
    /// Returns the last part of the path.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Cancel => "cancel",
            Verb::Pause => "pause",
            Verb::Resume => "resume",
            Verb::Retry => "retry",
            Verb::Redrive => "redrive",
        }
    }

    fn consent(self) -> Consent {
        match self {
            Verb::Cancel => Consent::Always,
            Verb::Pause | Verb::Retry | Verb::Redrive => Consent::OnTerminal,
            Verb::Resume => Consent::NotNeeded,
        }
    }
}

/// A bulk request, and whether to wait for its end.
#[derive(Debug)]
pub(crate) struct Order {
    verb: Verb,
    body: Map<String, Value>,
    dry_run: bool,
    detach: bool,
    yes: bool,
}

impl Order {
    pub(crate) fn new(verb: Verb, pace: &Pace) -> Order {
        let mut body = Map::new();
        body.insert("dry_run".to_owned(), json!(pace.dry_run));
        body.extend(pace.rate.iter().map(|rate| ("rate".to_owned(), json!(rate))));
        Order { verb, body, dry_run: pace.dry_run, detach: pace.detach, yes: pace.yes }
    }

    pub(crate) fn redrive(care: &Care) -> Order {
        let mut order = Order::new(Verb::Redrive, &care.pace);
        if !care.canary.is_empty() {
            order.body.insert("canary".to_owned(), json!(care.canary));
        }
        let deadline =
            care.deadline.iter().map(|deadline| ("deadline".to_owned(), json!(deadline)));
        order.body.extend(deadline);
        order
    }

    pub(crate) fn about(mut self, filter: Map<String, Value>) -> Order {
        self.body.insert("filter".to_owned(), Value::Object(filter));
        self
    }

    /// Selects all jobs. The server accepts an empty filter only with `all`, so that no mistake changes every job.
    pub(crate) fn about_all(mut self) -> Order {
        self.body.insert("all".to_owned(), json!(true));
        self.about(Map::new())
    }

    /// Counts the jobs and asks for confirmation, if necessary.
    async fn confirm(
        &self,
        path: &[&str],
        client: &Client,
        output: Output,
    ) -> Result<(), CliError> {
        if self.dry_run || self.verb.consent().asking(self.yes)? == Asking::No {
            return Ok(());
        }
        let mut body = self.body.clone();
        body.insert("dry_run".to_owned(), json!(true));
        let preview = client.post(path, Value::Object(body).to_string()).await?.value;
        if preview["count"] == 0 {
            return Ok(());
        }
        let verb = self.verb.name();
        let question = format!("{}{} {}?", verb[..1].to_uppercase(), &verb[1..], jobs(&preview));
        confirm::ask(&question, output)
    }
}

/// Formats the number of jobs that a dry run found.
fn jobs(preview: &Value) -> String {
    match preview["count"].as_u64() {
        Some(1) => "1 job".to_owned(),
        _ if preview["complete"] == false => format!("{} or more jobs", preview["count"]),
        _ => format!("{} jobs", preview["count"]),
    }
}

/// Starts a bulk operation, and waits until it is done.
pub(crate) async fn order(
    path: &[&str],
    order: &Order,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    order.confirm(path, client, output).await?;
    let answer = client.post(path, Value::Object(order.body.clone()).to_string()).await?;
    let value = answer.value;
    if order.dry_run {
        output.answer(answer.text, || counted(&value));
        return Ok(());
    }
    let id = text(&value, "id");
    if order.detach {
        output.answer(answer.text, || id);
        return Ok(());
    }
    let ended = tokio::select! {
        ended = follow(&id, client) => ended?,
        _ = tokio::signal::ctrl_c() => {
            let error = anyhow::anyhow!("operation {id} continues in the background");
            let hint = format!("show the operation with `rewheel operations show {id}`, stop it with `rewheel operations abort {id}`");
            return Err(CliError::new(exit::INTERRUPTED, error).hint(hint));
        }
    };
    let value = ended.value;
    output.answer(ended.text, || told(&value));
    judge(&value)
}

/// Polls the progress until the operation is done.
async fn follow(id: &str, client: &Client) -> Result<Document, CliError> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}");
    let bar =
        ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    loop {
        let document = client.get(&["operations", id], &[]).await?;
        let value = &document.value;
        let number = |name: &str| value[name].as_u64().unwrap_or_default();
        bar.set_length(number("total"));
        bar.set_position(number("done") + number("failed"));
        if let (Some(step), Some(steps)) =
            (value["canary"]["step"].as_u64(), value["canary"]["steps"].as_u64())
        {
            bar.set_message(format!("canary, step {step} of {steps}"));
        } else {
            bar.set_message("");
        }
        if value["state"] != "running" {
            bar.finish_and_clear();
            return Ok(document);
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

pub(crate) async fn list(args: &Paging, client: &Client, output: Output) -> Result<(), CliError> {
    let listed = pages::read(&["operations"], &[], args, client).await?;
    let names = ["ID", "VERB", "STATE", "DONE", "FAILED", "TOTAL", "BY", "CREATED"];
    let fields = ["id", "verb", "state", "done", "failed", "total", "by", "created"];
    listed.print(
        output,
        &names,
        |item| fields.map(|field| text(item, field)).to_vec(),
        "no operations",
    );
    Ok(())
}

pub(crate) async fn show(id: &str, client: &Client, output: Output) -> Result<(), CliError> {
    let document = client.get(&["operations", id], &[]).await?;
    output.answer(document.text, || told(&document.value));
    Ok(())
}

pub(crate) async fn abort(id: &str, client: &Client, output: Output) -> Result<(), CliError> {
    let document = client.post(&["operations", id, "abort"], String::new()).await?;
    output.answer(document.text, || told(&document.value));
    Ok(())
}

fn counted(preview: &Value) -> String {
    let count = text(preview, "count");
    let more = if preview["complete"] == false { " or more" } else { "" };
    let mut lines = vec![format!("{count}{more} jobs would be changed")];
    let sample = preview["sample"].as_array().cloned().unwrap_or_default();
    if !sample.is_empty() {
        lines.push("among them:".to_owned());
        lines.extend(sample.iter().filter_map(Value::as_str).map(|id| format!("  {}", inline(id))));
    }
    lines.join("\n")
}

/// Describes an operation in a sentence or two.
fn told(operation: &Value) -> String {
    let (verb, state) = (text(operation, "verb"), text(operation, "state"));
    let mut lines = vec![format!(
        "operation {verb} is {state}: {} of {} jobs changed ({})",
        text(operation, "done"),
        text(operation, "total"),
        text(operation, "id")
    )];
    let refused = operation["refused"].as_object();
    for (reason, count) in refused.into_iter().flatten() {
        lines.push(format!("  {count} failed: {}", inline(reason).replace('_', " ")));
    }
    if operation["reason"].is_string() {
        lines.push(format!("  {}", text(operation, "reason")));
    }
    lines.join("\n")
}

/// Returns an error for the shell if some jobs failed.
fn judge(operation: &Value) -> Result<(), CliError> {
    let failed = operation["failed"].as_u64().unwrap_or_default();
    if operation["state"] == "done" && failed == 0 {
        return Ok(());
    }
    let message = match operation["reason"].as_str() {
        Some(_) => "the operation was aborted".to_owned(),
        None => format!("{failed} jobs could not be changed"),
    };
    Err(CliError::new(exit::PARTLY, anyhow::Error::msg(message)))
}
