//! Lists, shows and changes kinds.

use crate::args::{BreakerCommand, KindsCommand, Paging};
use crate::cli_error::CliError;
use crate::client::{Client, Document};
use crate::confirm::{self, Asking, Consent};
use crate::output::{Output, table};
use crate::pages::{self, LIMIT_MAX};
use crate::screen::{inline, text};
use crate::submit;
use serde_json::{Value, json};

/// The job states that are counted for a kind.
const STATES: [&str; 4] = ["scheduled", "leased", "paused", "dead"];

pub(crate) async fn run(
    command: Option<KindsCommand>,
    paging: Paging,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let Some(command) = command else { return list(paging, client, output).await };
    let change = async |kind: &str, parts: &[&str]| {
        let path = [&["kinds", kind][..], parts].concat();
        changed(&client.post(&path, String::new()).await?, output)
    };
    match command {
        KindsCommand::List { paging } => list(paging, client, output).await,
        KindsCommand::Show(name) => {
            let kind = client.get(&["kinds", &name.kind], &[]).await?;
            output.answer(&kind.text, || described(&kind.value));
            Ok(())
        }
        KindsCommand::Put { kind, settings } => {
            let settings = submit::json("settings", &settings)?;
            let body = settings.get().to_owned();
            changed(&client.put(&["kinds", &kind], body).await?, output)
        }
        KindsCommand::Patch { kind, settings } => {
            let settings = submit::json("settings", &settings)?;
            let body = settings.get().to_owned();
            changed(&client.patch(&["kinds", &kind], None, body).await?, output)
        }
        KindsCommand::Delete { kind, yes } => delete(&kind, yes, client, output).await,
        KindsCommand::Pause(name) => change(&name.kind, &["pause"]).await,
        KindsCommand::Resume(name) => change(&name.kind, &["resume"]).await,
        KindsCommand::Breaker(BreakerCommand::Open(name)) => {
            change(&name.kind, &["breaker", "open"]).await
        }
        KindsCommand::Breaker(BreakerCommand::Close(name)) => {
            change(&name.kind, &["breaker", "close"]).await
        }
        KindsCommand::Breaker(BreakerCommand::Reset(name)) => {
            change(&name.kind, &["breaker", "reset"]).await
        }
    }
}

/// Lists all kinds, unless a page was requested.
async fn list(mut paging: Paging, client: &Client, output: Output) -> Result<(), CliError> {
    paging.all_pages |= paging.limit.is_none();
    let names = ["KIND", "RUNNER", "STATUS", "SCHEDULED", "LEASED", "PAUSED", "DEAD", "OLDEST DUE"];
    let listed = pages::read(&["kinds"], &[], &paging, client).await?;
    listed.print(output, &names, row, "no kinds");
    Ok(())
}

/// Deletes a kind after confirmation.
async fn delete(kind: &str, yes: bool, client: &Client, output: Output) -> Result<(), CliError> {
    if Consent::Always.asking(yes)? == Asking::Yes {
        let known = client.get(&["kinds", kind], &[]).await?.value;
        let jobs: u64 = STATES.iter().filter_map(|state| known["jobs"][state].as_u64()).sum();
        let question = match jobs {
            0 => format!("Delete the kind {kind}, which has no jobs?"),
            1 => format!("Delete the kind {kind}, which has 1 job?"),
            _ => format!("Delete the kind {kind}, which has {jobs} jobs?"),
        };
        confirm::ask(&question, output)?;
    }
    let answer = client.delete(&["kinds", kind]).await?;
    let document = match answer.text.as_str() {
        "" => json!({ "kind": kind, "deleted": true }).to_string(),
        text => text.to_owned(),
    };
    output.answer(document, || format!("{} deleted", inline(kind)));
    Ok(())
}

/// Returns every kind, however many there are.
pub(crate) async fn all(client: &Client) -> Result<Vec<Value>, CliError> {
    let paging = Paging { limit: Some(LIMIT_MAX.to_owned()), all_pages: true, cursor: None };
    Ok(pages::read(&["kinds"], &[], &paging, client).await?.items)
}

fn row(kind: &Value) -> Vec<String> {
    let mut row = vec![text(kind, "kind"), text(kind, "runner"), doing(kind).to_owned()];
    row.extend(STATES.map(|state| text(&kind["jobs"], state)));
    row.push(text(kind, "oldest_due"));
    row
}

/// Prints a kind that was changed.
fn changed(kind: &Document, output: Output) -> Result<(), CliError> {
    output.answer(&kind.text, || {
        let kind = &kind.value;
        format!("{} {}, breaker {}", text(kind, "kind"), doing(kind), breaker(kind))
    });
    Ok(())
}

fn breaker(kind: &Value) -> String {
    let state = text(&kind["breaker"], "state").replace('_', " ");
    let forced = if kind["breaker"]["forced"] == true { " (set by an operator)" } else { "" };
    format!("{state}{forced}")
}

/// Formats a kind for people: its state, jobs and settings.
fn described(kind: &Value) -> String {
    let mut rows = vec![
        vec!["kind".to_owned(), text(kind, "kind")],
        vec!["runner".to_owned(), text(kind, "runner")],
        vec!["status".to_owned(), doing(kind).to_owned()],
        vec!["breaker".to_owned(), breaker(kind)],
    ];
    let counts = STATES.map(|state| format!("{} {state}", text(&kind["jobs"], state)));
    rows.push(vec!["jobs".to_owned(), counts.join(", ")]);
    rows.push(vec!["oldest due".to_owned(), text(kind, "oldest_due")]);
    let mut parts = vec![table(&[], rows)];
    if let Some(settings) = kind["settings"].as_object().filter(|settings| !settings.is_empty()) {
        let row = |(name, _): (&String, &Value)| vec![name.clone(), text(&kind["settings"], name)];
        parts.push(table(&["SETTING", "VALUE"], settings.iter().map(row)));
    }
    parts.join("\n\n")
}

pub(crate) fn doing(kind: &Value) -> &'static str {
    let is = |name: &str| kind[name] == true;
    if is("paused") {
        "paused"
    } else if is("parked") {
        "parked"
    } else if is("runnable") {
        "runnable"
    } else {
        "not runnable"
    }
}
