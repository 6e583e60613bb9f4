//! Lists, shows and changes jobs.

use crate::args::{Change, Edit, List, Paging, Which};
use crate::cli_error::{CliError, exit};
use crate::client::Client;
use crate::operations::{self, Order, Verb};
use crate::output::{Output, table};
use crate::screen::{cut, inline, text};
use crate::{pages, screen, submit};
use rewheel_server::job_explanation;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Longer texts would push the other columns off the screen.
const CELL_CHARS_MAX: usize = 40;

/// How many characters of a failure are shown per attempt: the latest failure is shown in full above.
const FAILURE_CHARS_MAX: usize = 100;

pub(crate) async fn list(args: &List, client: &Client, output: Output) -> Result<(), CliError> {
    let mut query: Vec<_> = args.state.iter().map(|state| ("state", state.as_str())).collect();
    query.extend(args.key.as_deref().map(|key| ("key", key)));
    query.extend(args.parent.as_deref().map(|parent| ("parent", parent)));
    query.extend(args.schedule.as_deref().map(|name| ("schedule", name)));
    query.extend(args.group_key.as_deref().map(|key| ("group_key", key)));
    query.extend(args.incident.as_deref().map(|id| ("incident", id)));
    query.extend(args.holder.as_deref().map(|holder| ("holder", holder)));
    query.extend(conditions(&args.which));
    list_those(&query, &args.paging, client, output).await
}

/// Lists the jobs of a query.
pub(crate) async fn list_those(
    query: &[(&str, &str)],
    paging: &Paging,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let names = ["ID", "KIND", "STATE", "ATTEMPT", "DUE", "KEY", "FAILURE"];
    pages::read(&["jobs"], query, paging, client).await?.print(output, &names, row, "no jobs");
    Ok(())
}

pub(crate) async fn show(id: &str, client: &Client, output: Output) -> Result<(), CliError> {
    let job = client.get(&["jobs", id], &[]).await?;
    let value = job.value;
    let raw = RawJob::of(&job.text);
    output.answer(&job.text, || {
        let why = inline(&job_explanation::sentence(&value));
        format!("{why}\n\n{}", described(&value, &raw))
    });
    Ok(())
}

/// The parts of a job that must be printed as the server sent them: parsing and formatting would change numbers, repeated fields and
/// spaces.
#[derive(Debug, Default, Deserialize)]
struct RawJob {
    payload: Option<Box<RawValue>>,
    #[serde(default)]
    audit: Vec<RawChange>,
}

#[derive(Debug, Deserialize)]
struct RawChange {
    before: Option<Box<RawValue>>,
    after: Option<Box<RawValue>>,
}

impl RawJob {
    fn of(document: &str) -> RawJob {
        serde_json::from_str(document).unwrap_or_default()
    }
}

impl RawChange {
    fn text(&self) -> String {
        let text = |value: &Option<Box<RawValue>>| {
            value.as_ref().map_or_else(|| "null".to_owned(), |value| value.get().to_owned())
        };
        format!("{} -> {}", text(&self.before), text(&self.after))
    }
}

/// Changes the named jobs, or those of a filter.
pub(crate) async fn change(
    verb: Verb,
    args: &Change,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let filter = filter(&args.state, &args.which, args.incident.as_deref());
    let has_filter = args.all || !filter.is_empty();
    let Change { ids, pace, .. } = args;
    if args.all && !filter.is_empty() {
        return Err(CliError::usage(
            "--all matches every job: remove the other filters".to_owned(),
        ));
    }
    if ids.is_empty() {
        let order = Order::new(verb, pace);
        let order = match has_filter {
            true if args.all => order.about_all(),
            true => order.about(filter),
            false => {
                let message = "no jobs selected: give ids or a filter".to_owned();
                return Err(CliError::usage(message)
                    .hint("use --kind, --state, --category or another filter, or --all"));
            }
        };
        return operations::order(&["jobs", verb.name()], &order, client, output).await;
    }
    if has_filter || pace.dry_run || pace.rate.is_some() || pace.detach {
        let message = "ids cannot be combined with filters or bulk options";
        let hint =
            "give either ids or filters; --dry-run, --rate and --detach work only with filters";
        return Err(CliError::usage(message.to_owned()).hint(hint));
    }
    change_each(verb, ids, client, output).await
}

/// Builds the filter of a bulk request.
pub(crate) fn filter(
    states: &[String],
    which: &Which,
    incident: Option<&str>,
) -> Map<String, Value> {
    let mut filter = Map::new();
    for (name, values) in [("state", states), ("kind", &which.kind)] {
        if !values.is_empty() {
            filter.insert(name.to_owned(), json!(values));
        }
    }
    let single = which.single().chain(incident.map(|incident| ("incident", incident)));
    filter.extend(single.map(|(name, value)| (name.to_owned(), json!(value))));
    filter
}

/// Changes jobs one by one, and prints the result of each.
pub(crate) async fn change_each(
    verb: Verb,
    ids: &[String],
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let verb = verb.name();
    let mut failures = Vec::new();
    for id in ids {
        match client.post(&["jobs", id, verb], String::new()).await {
            Ok(job) => {
                let value = job.value;
                output.answer(job.text, || changed(&value));
            }
            Err(trouble) if ids.len() == 1 => return Err(trouble),
            Err(trouble) => {
                output.trouble(&trouble);
                failures.push(trouble);
            }
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    let message = format!("could not {verb} {} of {} jobs", failures.len(), ids.len());
    Err(CliError::new(exit::PARTLY, anyhow::Error::msg(message)))
}

/// Edits a job.
pub(crate) async fn edit(args: &Edit, client: &Client, output: Output) -> Result<(), CliError> {
    let mut fields = Map::new();
    let texts = [("due", &args.due), ("deadline", &args.deadline)];
    for (name, value) in texts.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    {
        let is_none = name == "deadline" && value == "none";
        fields.insert(name.to_owned(), if is_none { Value::Null } else { json!(value) });
    }
    let numbers = [("priority", args.priority), ("attempts_max", args.attempts_max)];
    fields.extend(
        numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))),
    );
    let mut body = Value::Object(fields).to_string();
    if let Some(payload) = &args.payload {
        // Send the payload as written: numbers and the order of fields matter to the callee.
        let payload = submit::json("payload", payload)?;
        let rest = body.split_off(1);
        let comma = if rest == "}" { "" } else { "," };
        body = format!("{{\"payload\":{}{comma}{rest}", payload.get());
    }
    let job = client.patch(&["jobs", &args.id], args.if_version, body).await?;
    let value = job.value;
    output.answer(job.text, || changed(&value));
    Ok(())
}

/// Returns the query parameters of a filter.
pub(crate) fn conditions(which: &Which) -> impl Iterator<Item = (&'static str, &str)> {
    which.kind.iter().map(|kind| ("kind", kind.as_str())).chain(which.single())
}

fn row(job: &Value) -> Vec<String> {
    let attempt = format!("{}/{}", text(job, "attempt"), text(job, "attempts_max"));
    vec![
        text(job, "id"),
        text(job, "kind"),
        text(job, "state"),
        attempt,
        text(job, "due"),
        short(&text(job, "key")),
        short(&failure(job)),
    ]
}

/// Formats a job for people: its fields, payload, failures and history.
fn described(job: &Value, raw: &RawJob) -> String {
    let names = [
        "id",
        "kind",
        "state",
        "wanted",
        "key",
        "tenant",
        "shard_key",
        "parent",
        "instant",
        "group_key",
        "blocked",
        "turn",
        "priority",
        "attempt",
        "attempts_max",
        "takeovers",
        "fence",
        "holder",
        "version",
        "due",
        "deadline",
        "attempt_timeout",
        "backoff",
        "created",
        "finished",
    ];
    let mut rows: Vec<Vec<String>> = names
        .iter()
        .filter(|name| !job[**name].is_null())
        .map(|name| vec![(*name).to_owned(), text(job, name)])
        .collect();
    rows.push(vec!["because".to_owned(), text(&job["due_because"], "text")]);
    let failure = failure(job);
    if !failure.is_empty() {
        rows.push(vec![
            "failure".to_owned(),
            failure.lines().next().unwrap_or_default().to_owned(),
        ]);
    }
    if let (Some(content_type), Some(bytes)) =
        (job["result"]["content_type"].as_str(), job["result"]["bytes"].as_u64())
    {
        let words =
            format!("{bytes} bytes of {content_type}; print them with `rewheel jobs result`");
        rows.push(vec!["result".to_owned(), words]);
    }
    if let Some(why) = job["result_dropped"].as_str() {
        rows.push(vec!["result_dropped".to_owned(), why.to_owned()]);
    }
    let payload = raw.payload.as_ref().map_or("null", |payload| payload.get());
    let is_line = !payload.contains(['\n', '\r', '\t']);
    if is_line {
        rows.push(vec!["payload".to_owned(), screen::json(payload)]);
    }
    let mut parts = vec![table(&[], rows)];
    if failure.lines().count() > 1 {
        let lines: Vec<_> = failure.lines().map(|line| format!("  {}", inline(line))).collect();
        parts.push(format!("FAILURE\n{}", lines.join("\n")));
    }
    // In a table it would be indented.
    if !is_line {
        parts.push(format!("PAYLOAD\n{}", screen::json(payload)));
    }
    parts.extend(history(job, raw));
    parts.join("\n\n")
}

/// Formats the attempts of a job, and its audit log.
fn history(job: &Value, raw: &RawJob) -> Vec<String> {
    let mut parts = Vec::new();
    let list = |name: &str| job[name].as_array().filter(|list| !list.is_empty());
    if let Some(attempts) = list("attempts") {
        let names = ["ATTEMPT", "STARTED", "DURATION", "RESULT", "DECISION", "DELAY"];
        let row = |attempt: &Value| {
            vec![
                text(attempt, "attempt"),
                text(attempt, "started"),
                text(attempt, "duration"),
                cut(&said(attempt), FAILURE_CHARS_MAX),
                text(attempt, "decision"),
                text(attempt, "delay"),
            ]
        };
        parts.push(table(&names, attempts.iter().map(row)));
    }
    if let Some(audit) = list("audit") {
        let row = |(entry, change): (&Value, &RawChange)| {
            vec![text(entry, "at"), text(entry, "who"), text(entry, "what"), change.text()]
        };
        let rows = audit.iter().zip(&raw.audit).map(row);
        parts.push(table(&["AT", "WHO", "WHAT", "CHANGE"], rows));
    }
    parts
}

fn changed(job: &Value) -> String {
    let (id, state, wanted) = (text(job, "id"), text(job, "state"), text(job, "wanted"));
    match wanted.as_str() {
        "" => format!("{id} {state}"),
        wanted => format!("{id} {state} ({wanted} requested)"),
    }
}

fn failure(job: &Value) -> String {
    if job["failure"].is_null() { String::new() } else { said(&job["failure"]) }
}

/// Formats a failure, with all lines of the message.
fn said(failure: &Value) -> String {
    let (category, code) = (text(failure, "category"), text(failure, "code"));
    let message = failure["message"].as_str().unwrap_or_default();
    // The message of a callback starts with its status.
    let code = if message.starts_with(&code) { "" } else { &code };
    let words = [category.as_str(), code, message];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn short(text: &str) -> String {
    cut(text, CELL_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::said;
    use serde_json::json;

    #[track_caller]
    fn check(code: Option<&str>, message: &str, expected: &str) {
        let failure = json!({"category": "transient", "code": code, "message": message});
        assert_eq!(said(&failure), expected);
    }

    #[test]
    fn a_status_is_said_once() {
        check(
            Some("503"),
            "503 Service Unavailable: busy",
            "transient 503 Service Unavailable: busy",
        );
        check(Some("busy"), "come back later", "transient busy come back later");
        check(None, "come back later", "transient come back later");
    }
}
