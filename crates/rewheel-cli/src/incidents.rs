//! Lists what fails, by its cause; changes all jobs of a cause.

use crate::args::IncidentsCommand;
use crate::client::Client;
use crate::jobs::cut;
use crate::operations::{self, Order};
use crate::output::{Output, table};
use crate::trouble::Trouble;
use serde_json::Value;

/// How much of a message fits beside the rest.
const MESSAGE_CHARS: usize = 120;

pub(crate) async fn run(
    command: Option<IncidentsCommand>,
    client: &Client,
    output: Output,
) -> Result<(), Trouble> {
    let (id, verb, order) = match &command {
        None | Some(IncidentsCommand::List) => return list(client, output).await,
        Some(IncidentsCommand::Hold { id, pace }) => (id, "hold", Order::new(pace)),
        Some(IncidentsCommand::Release { id, pace }) => (id, "release", Order::new(pace)),
        Some(IncidentsCommand::Redrive { id, care }) => (id, "redrive", Order::redrive(care)),
    };
    operations::order(&["incidents", id, verb], &order, client, output).await
}

async fn list(client: &Client, output: Output) -> Result<(), Trouble> {
    let page = client.get(&["incidents"], &[("limit", "1000")]).await?;
    let document = page.value;
    let items = document["items"].as_array().cloned().unwrap_or_default();
    let is_complete = document["complete"] != false;
    output.answer(document, || {
        if items.is_empty() {
            return "nothing fails\n".to_owned();
        }
        let names =
            ["INCIDENT", "KIND", "CATEGORY", "CODE", "JOBS", "DEAD", "LAST SEEN", "MESSAGE"];
        let mut text = table(&names, items.iter().map(row));
        if !is_complete {
            text.push_str("\nthere are more jobs than were looked at: these are of the newest\n");
        }
        text
    });
    Ok(())
}

fn row(incident: &Value) -> Vec<String> {
    let text = |name: &str| {
        let value = &incident[name];
        let none = if value.is_null() { String::new() } else { value.to_string() };
        value.as_str().map_or(none, str::to_owned)
    };
    let mut row =
        ["id", "kind", "category", "code", "count", "dead", "last_seen"].map(text).to_vec();
    row.push(cut(&text("message"), MESSAGE_CHARS));
    row
}
