//! Shows the audit log.

use crate::args::Audit;
use crate::cli_error::CliError;
use crate::client::Client;
use crate::output::Output;
use crate::pages;
use crate::screen::{cut, text};
use serde_json::Value;

/// How many characters of a change are shown in the table; `--json` shows all.
const CHANGE_CHARS: usize = 80;

pub(crate) async fn list(args: &Audit, client: &Client, output: Output) -> Result<(), CliError> {
    let mut query: Vec<(&str, &str)> = Vec::new();
    query.extend(args.job.as_deref().map(|job| ("job", job)));
    for (name, values) in [("what", &args.what), ("kind", &args.kind), ("who", &args.who)] {
        query.extend(values.iter().map(|value| (name, value.as_str())));
    }
    let names = ["AT", "WHO", "WHAT", "KIND", "JOB", "CHANGE"];
    let listed = pages::read(&["audit"], &query, &args.paging, client).await?;
    listed.print(output, &names, row, "no entries");
    Ok(())
}

fn row(entry: &Value) -> Vec<String> {
    let part = |name: &str| match text(entry, name) {
        empty if empty == "{}" => String::new(),
        text => text,
    };
    let (before, after) = (part("before"), part("after"));
    let change = match (before.as_str(), after.as_str()) {
        ("", "") => String::new(),
        ("", after) => after.to_owned(),
        (before, "") => format!("{before} removed"),
        (before, after) => format!("{before} -> {after}"),
    };
    let mut row = ["at", "who", "what", "kind", "job"].map(|name| text(entry, name)).to_vec();
    row.push(cut(&change, CHANGE_CHARS));
    row
}
