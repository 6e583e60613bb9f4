//! Lists the kinds.

use crate::client::Client;
use crate::output::{Output, table};
use crate::trouble::Trouble;
use serde_json::{Value, json};

pub(crate) async fn run(client: &Client, output: Output) -> Result<(), Trouble> {
    let items = all(client).await?;
    let document = json!({ "items": items, "next": null });
    output.answer(document, || {
        let names = ["KIND", "RUNNER", "IS", "SCHEDULED", "LEASED", "PAUSED", "DEAD", "OLDEST DUE"];
        table(&names, items.iter().map(row))
    });
    Ok(())
}

/// Returns every kind, however many there are.
pub(crate) async fn all(client: &Client) -> Result<Vec<Value>, Trouble> {
    let mut items = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut query = vec![("limit", "1000")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = client.get(&["kinds"], &query).await?;
        items.extend(page.value["items"].as_array().cloned().unwrap_or_default());
        cursor = page.value["next"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(items);
        }
    }
}

fn row(kind: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let due = &kind["oldest_due"];
    let mut row = vec![text(&kind["kind"]), text(&kind["runner"]), doing(kind).to_owned()];
    row.extend(["scheduled", "leased", "paused", "dead"].map(|state| text(&kind["jobs"][state])));
    row.push(if due.is_null() { String::new() } else { text(due) });
    row
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
