//! Lists failures grouped by cause, and changes the jobs of a group.

use crate::args::{IncidentsCommand, Paging};
use crate::cli_error::CliError;
use crate::client::Client;
use crate::operations::{self, Order, Verb};
use crate::output::Output;
use crate::pages::{self, LIMIT_MAX};
use crate::screen::{cut, inline, text};
use serde_json::Value;

/// How many characters of a message are shown.
const MESSAGE_CHARS: usize = 120;

pub(crate) async fn run(
    command: Option<IncidentsCommand>,
    paging: Paging,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let (id, verb, order) = match &command {
        None => return list(paging, client, output).await,
        Some(IncidentsCommand::List { paging }) => {
            return list(paging.clone(), client, output).await;
        }
        Some(IncidentsCommand::Show { id }) => return show(id, client, output).await,
        Some(IncidentsCommand::Hold { id, pace }) => (id, "hold", Order::new(Verb::Pause, pace)),
        Some(IncidentsCommand::Release { id, pace }) => {
            (id, "release", Order::new(Verb::Resume, pace))
        }
        Some(IncidentsCommand::Redrive { id, care }) => (id, "redrive", Order::redrive(care)),
    };
    operations::order(&["incidents", id, verb], &order, client, output).await
}

async fn list(mut paging: Paging, client: &Client, output: Output) -> Result<(), CliError> {
    paging.limit.get_or_insert_with(|| LIMIT_MAX.to_owned());
    let listed = pages::read(&["incidents"], &[], &paging, client).await?;
    let names = ["INCIDENT", "KIND", "CATEGORY", "CODE", "JOBS", "DEAD", "LAST SEEN", "MESSAGE"];
    listed.print(output, &names, row, "no failures");
    Ok(())
}

async fn show(id: &str, client: &Client, output: Output) -> Result<(), CliError> {
    let incident = client.get(&["incidents", id], &[]).await?;
    let value = incident.value;
    output.answer(incident.text, || {
        let names = [
            "id",
            "kind",
            "category",
            "code",
            "message",
            "count",
            "dead",
            "first_seen",
            "last_seen",
        ];
        let mut lines: Vec<String> = names
            .iter()
            .map(|name| format!("{:12}{}", name.replace('_', " "), text(&value, name)))
            .collect();
        let examples = value["examples"].as_array().into_iter().flatten();
        lines.extend(
            examples.filter_map(Value::as_str).map(|id| format!("{:12}{}", "example", inline(id))),
        );
        lines.join("\n")
    });
    Ok(())
}

fn row(incident: &Value) -> Vec<String> {
    let names = ["id", "kind", "category", "code", "count", "dead", "last_seen"];
    let mut row = names.map(|name| text(incident, name)).to_vec();
    row.push(cut(incident["message"].as_str().unwrap_or_default(), MESSAGE_CHARS));
    row
}
