//! Shows jobs, and changes them.

use crate::args::{Edit, List, Paging, Which};
use crate::client::Client;
use crate::output::{Output, table};
use crate::trouble::{Trouble, exit};
use crate::{submit, why};
use serde_json::{Map, Value, json};

/// Longer texts would push the other columns off the screen.
const CELL_CHARS_MAX: usize = 40;

/// How much of a failure is shown for each attempt: the latest stands above them in full.
const FAILURE_CHARS_MAX: usize = 100;

pub(crate) async fn list(args: &List, client: &Client, output: Output) -> Result<(), Trouble> {
    let states = args.state.iter().map(|state| ("state", state.as_str()));
    list_those(states.chain(query(&args.which, &args.paging)).collect(), client, output).await
}

/// Lists the jobs of a query.
pub(crate) async fn list_those(
    query: Vec<(&str, &str)>,
    client: &Client,
    output: Output,
) -> Result<(), Trouble> {
    let page = client.get(&["jobs"], &query).await?;
    let items = page.value.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    output.answer(page.text, || {
        let names = ["ID", "KIND", "STATE", "ATTEMPT", "DUE", "KEY", "FAILURE"];
        table(&names, items.iter().map(row))
    });
    if let Some(next) = page.value.get("next").and_then(Value::as_str) {
        output.note(format_args!("there are more: --cursor {next}"));
    }
    Ok(())
}

pub(crate) async fn show(id: &str, client: &Client, output: Output) -> Result<(), Trouble> {
    let job = client.get(&["jobs", id], &[]).await?;
    let value = job.value;
    let kind = kind_of(&value, client).await;
    output.answer(job.text, || {
        format!("{}\n\n{}", why::sentence(&value, kind.as_ref()), described(&value))
    });
    Ok(())
}

/// What keeps a job that nobody has from running may be its kind's. Without an answer that is not told.
async fn kind_of(job: &Value, client: &Client) -> Option<Value> {
    let kind = job["kind"].as_str().filter(|_| job["state"] == "scheduled")?;
    client.get(&["kinds", kind], &[]).await.ok().map(|kind| kind.value)
}

/// Changes jobs one by one, and says what became of each.
pub(crate) async fn change(
    verb: &str,
    ids: &[String],
    client: &Client,
    output: Output,
) -> Result<(), Trouble> {
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
    Err(Trouble::new(exit::PARTLY, anyhow::Error::msg(message)))
}

/// Changes what a job says.
pub(crate) async fn edit(args: &Edit, client: &Client, output: Output) -> Result<(), Trouble> {
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
        // As it is written: numbers and the order of fields are the callee's business.
        let payload = submit::payload(payload)?;
        let rest = body.split_off(1);
        let comma = if rest == "}" { "" } else { "," };
        body = format!("{{\"payload\":{}{comma}{rest}", payload.get());
    }
    let job = client.patch(&["jobs", &args.id], args.if_version, body).await?;
    let value = job.value;
    output.answer(job.text, || changed(&value));
    Ok(())
}

/// The parameters that say which jobs.
pub(crate) fn query<'a>(which: &'a Which, paging: &'a Paging) -> Vec<(&'a str, &'a str)> {
    let mut query: Vec<_> = which.kind.iter().map(|kind| ("kind", kind.as_str())).collect();
    query.extend(which.single());
    let paging = [("limit", &paging.limit), ("cursor", &paging.cursor)];
    query.extend(paging.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
    query
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

/// A job for a person: its fields, its input, what went wrong, what others did.
fn described(job: &Value) -> String {
    let names = [
        "id",
        "kind",
        "state",
        "wanted",
        "key",
        "tenant",
        "shard_key",
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
    if !job["failure"].is_null() {
        rows.push(vec!["failure".to_owned(), failure(job)]);
    }
    rows.push(vec!["payload".to_owned(), job["payload"].to_string()]);
    let mut parts = vec![table(&[], rows)];
    let list = |name: &str| job[name].as_array().filter(|list| !list.is_empty());
    if let Some(attempts) = list("attempts") {
        let names = ["ATTEMPT", "STARTED", "DURATION", "FAILURE", "DECISION", "DELAY"];
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
        let row = |entry: &Value| {
            let change = format!("{} -> {}", entry["before"], entry["after"]);
            vec![text(entry, "at"), text(entry, "who"), text(entry, "what"), change]
        };
        parts.push(table(&["AT", "WHO", "WHAT", "CHANGE"], audit.iter().map(row)));
    }
    parts.join("\n\n")
}

fn changed(job: &Value) -> String {
    match job["wanted"].as_str() {
        Some(wanted) => {
            format!("{} {} ({wanted} is wanted of its holder)", text(job, "id"), text(job, "state"))
        }
        None => format!("{} {}", text(job, "id"), text(job, "state")),
    }
}

fn failure(job: &Value) -> String {
    if job["failure"].is_null() { String::new() } else { said(&job["failure"]) }
}

fn said(failure: &Value) -> String {
    let (category, code, message) =
        (text(failure, "category"), text(failure, "code"), text(failure, "message"));
    // What a callee answered begins with its status.
    let code = if message.starts_with(&code) { String::new() } else { code };
    let words = [category, code, message];
    words.iter().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

pub(crate) fn text(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    }
}

fn short(text: &str) -> String {
    cut(text, CELL_CHARS_MAX)
}

/// Returns the first line of a text, and of that no more than so much.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    if first.chars().count() <= most {
        return first.to_owned();
    }
    let kept: String = first.chars().take(most - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::{cut, said};
    use serde_json::json;

    #[track_caller]
    fn check(code: Option<&str>, message: &str, expected: &str) {
        let failure = json!({"category": "transient", "code": code, "message": message});
        assert_eq!(said(&failure), expected);
    }

    #[test]
    fn a_long_line_is_cut_where_one_can_see_it() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(cut("one\ntwo", 9), "one");
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
