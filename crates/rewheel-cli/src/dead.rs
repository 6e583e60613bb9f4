//! Looks at dead letters, and puts them back to work.

use crate::args::{DeadList, Redrive};
use crate::client::Client;
use crate::jobs::{self, query};
use crate::operations::{self, Order};
use crate::output::Output;
use crate::trouble::Trouble;
use serde_json::{Map, Value, json};

pub(crate) async fn list(args: &DeadList, client: &Client, output: Output) -> Result<(), Trouble> {
    let mut query = query(&args.which, &args.paging);
    query.push(("state", "dead"));
    jobs::list_those(query, client, output).await
}

pub(crate) async fn redrive(
    args: &Redrive,
    client: &Client,
    output: Output,
) -> Result<(), Trouble> {
    let filter = filter(args);
    if args.ids.is_empty() && filter.is_empty() {
        let message = "say which dead letters: name them, or choose them by an option";
        return Err(Trouble::usage(message.to_owned()).hint("--kind, --incident, …, or --all"));
    }
    if args.ids.is_empty() {
        let order = Order::redrive(&args.care);
        // Only the state that every dead letter has: the server wants to be told that all are meant.
        let is_all = args.all && filter.len() == 1;
        let order = if is_all { order.about_all() } else { order.about(filter) };
        return operations::order(&["jobs", "redrive"], &order, client, output).await;
    }
    if !filter.is_empty() || !args.care.canary.is_empty() || args.care.pace.dry_run {
        let message = "ids are for some jobs, the options for those of a filter";
        return Err(Trouble::usage(message.to_owned()).hint("use either"));
    }
    jobs::change("retry", &args.ids, client, output).await
}

fn filter(args: &Redrive) -> Map<String, Value> {
    let which = &args.which;
    let mut filter = Map::new();
    if !which.kind.is_empty() {
        filter.insert("kind".to_owned(), json!(which.kind));
    }
    let incident = args.incident.as_deref().map(|incident| ("incident", incident));
    let single = which.single().chain(incident);
    filter.extend(single.map(|(name, value)| (name.to_owned(), json!(value))));
    if args.all {
        filter.insert("state".to_owned(), json!("dead"));
    }
    filter
}
