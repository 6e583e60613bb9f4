//! Lists and redrives dead letters.

use crate::args::{DeadList, Redrive};
use crate::cli_error::CliError;
use crate::client::Client;
use crate::jobs::{self, conditions};
use crate::operations::{self, Order, Verb};
use crate::output::Output;

pub(crate) async fn list(args: &DeadList, client: &Client, output: Output) -> Result<(), CliError> {
    let query: Vec<_> = conditions(&args.which).chain([("state", "dead")]).collect();
    jobs::list_those(&query, &args.paging, client, output).await
}

pub(crate) async fn redrive(
    args: &Redrive,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let filter = jobs::filter(&[], &args.which, args.incident.as_deref());
    if args.all && !filter.is_empty() {
        let message = "--all matches every dead letter: remove the other filters";
        return Err(CliError::usage(message.to_owned()));
    }
    let has_filter = args.all || !filter.is_empty();
    if args.ids.is_empty() && !has_filter {
        let message = "no dead letters selected: give ids or a filter";
        return Err(CliError::usage(message.to_owned())
            .hint("use --kind, --incident or another filter, or --all"));
    }
    if args.ids.is_empty() {
        let order = Order::redrive(&args.care);
        let order = if args.all { order.about_all() } else { order.about(filter) };
        return operations::order(&["jobs", "redrive"], &order, client, output).await;
    }
    if has_filter || !args.care.canary.is_empty() || args.care.pace.dry_run {
        let message = "ids cannot be combined with filters or bulk options";
        let hint = "give either ids or filters; --dry-run and --canary work only with filters";
        return Err(CliError::usage(message.to_owned()).hint(hint));
    }
    jobs::change_each(Verb::Retry, &args.ids, client, output).await
}
