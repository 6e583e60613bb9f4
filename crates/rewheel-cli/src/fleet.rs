//! Lists the processes that run jobs, and shows statistics.

use crate::args::Paging;
use crate::cli_error::CliError;
use crate::client::Client;
use crate::output::{Output, table};
use crate::pages::{self, LIMIT_MAX};
use crate::screen::text;
use serde_json::Value;

pub(crate) async fn holders(
    mut paging: Paging,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    paging.limit.get_or_insert_with(|| LIMIT_MAX.to_owned());
    let listed = pages::read(&["holders"], &[], &paging, client).await?;
    let names = ["ID", "NAME", "ROLE", "STATE", "LEASE", "JOINED", "RENEWED", "DIED"];
    let fields = ["id", "name", "role", "state", "lease_ttl", "joined", "renewed", "died"];
    listed.print(
        output,
        &names,
        |item| fields.map(|field| text(item, field)).to_vec(),
        "no holders",
    );
    Ok(())
}

pub(crate) async fn stats(client: &Client, output: Output) -> Result<(), CliError> {
    let stats = client.get(&["stats"], &[]).await?;
    output.answer(stats.text, || described(&stats.value));
    Ok(())
}

fn described(stats: &Value) -> String {
    let (jobs, here) = (&stats["jobs"], &stats["here"]);
    let states = ["scheduled", "leased", "paused", "dead"];
    let mut rows: Vec<Vec<String>> =
        states.iter().map(|state| vec![(*state).to_owned(), text(jobs, state)]).collect();
    rows.push(vec!["oldest due".to_owned(), text(stats, "oldest_due")]);
    if stats["approximate"] == true {
        rows.push(vec!["counted at".to_owned(), text(stats, "as_of")]);
    }
    rows.push(vec!["holders alive".to_owned(), text(&stats["holders"], "alive")]);
    let number = |name: &str| here[name].as_u64().unwrap_or_default();
    let used = number("concurrency").saturating_sub(number("concurrency_free"));
    rows.push(vec!["slots used".to_owned(), format!("{used} of {}", number("concurrency"))]);
    rows.push(vec!["claimed, not started".to_owned(), text(here, "waiting")]);
    let mut parts = vec![table(&[], rows)];
    let list = |name: &str| here[name].as_array().filter(|list| !list.is_empty());
    if let Some(decisions) = list("decisions") {
        let row =
            |one: &Value| ["decision", "category", "count"].map(|name| text(one, name)).to_vec();
        parts.push(table(&["DECISION", "CATEGORY", "COUNT"], decisions.iter().map(row)));
    }
    if let Some(notices) = list("notices") {
        let names = ["notifier", "sent", "suppressed", "failed", "summaries"];
        let row = |one: &Value| names.map(|name| text(one, name)).to_vec();
        let heads = ["NOTIFIER", "SENT", "SUPPRESSED", "FAILED", "SUMMARIES"];
        parts.push(table(&heads, notices.iter().map(row)));
    }
    parts.join("\n\n")
}
