//! Orders changes of many jobs, and follows them.

use crate::args::{Care, Pace, Paging};
use crate::client::{Client, Document};
use crate::jobs::text;
use crate::output::{Output, table};
use crate::trouble::{Trouble, exit};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How often to ask how far it is.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// What is asked for, and whether to wait for it.
#[derive(Debug)]
pub(crate) struct Order {
    body: Map<String, Value>,
    dry_run: bool,
    detach: bool,
}

impl Order {
    pub(crate) fn new(pace: &Pace) -> Order {
        let mut body = Map::new();
        body.insert("dry_run".to_owned(), json!(pace.dry_run));
        body.extend(pace.rate.iter().map(|rate| ("rate".to_owned(), json!(rate))));
        Order { body, dry_run: pace.dry_run, detach: pace.detach }
    }

    pub(crate) fn redrive(care: &Care) -> Order {
        let mut order = Order::new(&care.pace);
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

    /// Says that an empty filter is meant.
    pub(crate) fn about_all(mut self) -> Order {
        self.body.insert("all".to_owned(), json!(true));
        self.about(Map::new())
    }
}

/// Orders a change, and waits until it is done.
pub(crate) async fn order(
    path: &[&str],
    order: &Order,
    client: &Client,
    output: Output,
) -> Result<(), Trouble> {
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
            let error = anyhow::anyhow!("the operation {id} goes on");
            let hint = format!("rewheel operations show {id}, or abort {id}");
            return Err(Trouble::new(exit::INTERRUPTED, error).hint(hint));
        }
    };
    let value = ended.value;
    output.answer(ended.text, || told(&value));
    judge(&value)
}

/// Asks how far it is, until it is done.
async fn follow(id: &str, client: &Client) -> Result<Document, Trouble> {
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

pub(crate) async fn list(args: &Paging, client: &Client, output: Output) -> Result<(), Trouble> {
    let single = [("limit", &args.limit), ("cursor", &args.cursor)];
    let query: Vec<_> =
        single.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    let page = client.get(&["operations"], &query).await?;
    let items = page.value["items"].as_array().cloned().unwrap_or_default();
    output.answer(page.text, || {
        if items.is_empty() {
            return "there are none".to_owned();
        }
        let names = ["ID", "VERB", "STATE", "DONE", "FAILED", "TOTAL", "BY", "CREATED"];
        let fields = ["id", "verb", "state", "done", "failed", "total", "by", "created"];
        table(&names, items.iter().map(|item| fields.map(|field| text(item, field)).to_vec()))
    });
    if let Some(next) = page.value["next"].as_str() {
        output.note(format_args!("there are more: --cursor {next}"));
    }
    Ok(())
}

pub(crate) async fn show(id: &str, client: &Client, output: Output) -> Result<(), Trouble> {
    let document = client.get(&["operations", id], &[]).await?;
    output.answer(document.text, || told(&document.value));
    Ok(())
}

pub(crate) async fn abort(id: &str, client: &Client, output: Output) -> Result<(), Trouble> {
    let document = client.post(&["operations", id, "abort"], String::new()).await?;
    output.answer(document.text, || told(&document.value));
    Ok(())
}

fn counted(preview: &Value) -> String {
    let more = if preview["complete"] == false { " or more" } else { "" };
    let mut lines = vec![format!("{}{more} jobs would be changed", preview["count"])];
    let sample = preview["sample"].as_array().cloned().unwrap_or_default();
    if !sample.is_empty() {
        lines.push("among them:".to_owned());
        lines.extend(sample.iter().filter_map(Value::as_str).map(|id| format!("  {id}")));
    }
    lines.join("\n")
}

/// An operation in a sentence or two.
fn told(operation: &Value) -> String {
    let (verb, state) = (text(operation, "verb"), text(operation, "state"));
    let mut lines = vec![format!(
        "{verb} is {state}: {} of {} jobs changed ({})",
        operation["done"],
        operation["total"],
        text(operation, "id")
    )];
    let refused = operation["refused"].as_object();
    for (reason, count) in refused.into_iter().flatten() {
        lines.push(format!("  {count} could not be: {}", reason.replace('_', " ")));
    }
    if let Some(reason) = operation["reason"].as_str() {
        lines.push(format!("  {reason}"));
    }
    lines.join("\n")
}

/// Whether all went well, for the shell.
fn judge(operation: &Value) -> Result<(), Trouble> {
    let failed = operation["failed"].as_u64().unwrap_or_default();
    if operation["state"] == "done" && failed == 0 {
        return Ok(());
    }
    let message = match operation["reason"].as_str() {
        Some(_) => "it did not come to its end".to_owned(),
        None => format!("{failed} jobs could not be changed"),
    };
    Err(Trouble::new(exit::PARTLY, anyhow::Error::msg(message)))
}
