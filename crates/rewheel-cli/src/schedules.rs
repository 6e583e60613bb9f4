//! Lists, shows and changes schedules.

use crate::args::{Paging, PutSchedule, SchedulesCommand};
use crate::cli_error::{CliError, exit};
use crate::client::{Client, Document};
use crate::confirm::{self, Asking, Consent};
use crate::output::{Output, table};
use crate::pages;
use crate::screen::{inline, text};
use crate::submit;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The body of `PUT /v1/schedules/{name}`.
#[derive(Debug, Serialize)]
struct Body<'a> {
    cron: Option<&'a str>,
    zone: Option<&'a str>,
    every: Option<&'a str>,
    overlap: Option<&'a str>,
    catch_up: Option<&'a str>,
    job: BodyJob<'a>,
}

#[derive(Debug, Serialize)]
struct BodyJob<'a> {
    kind: &'a str,
    payload: Box<RawValue>,
    tenant: Option<&'a str>,
    priority: Option<i64>,
    delay: Option<&'a str>,
    group_key: Option<&'a str>,
    shard_key: Option<&'a str>,
    attempts_max: Option<i64>,
    attempt_timeout: Option<&'a str>,
    backoff: Option<&'a str>,
}

pub(crate) async fn run(
    command: Option<SchedulesCommand>,
    paging: Paging,
    client: &Client,
    output: Output,
) -> Result<(), CliError> {
    let Some(command) = command else { return list(&paging, client, output).await };
    match command {
        SchedulesCommand::List { paging } => list(&paging, client, output).await,
        SchedulesCommand::Show(named) => {
            let schedule = client.get(&["schedules", &named.name], &[]).await?;
            output.answer(&schedule.text, || described(&schedule.value));
            Ok(())
        }
        SchedulesCommand::Put(args) => put(&args, client, output).await,
        SchedulesCommand::Pause(named) => change(&named.name, "pause", client, output).await,
        SchedulesCommand::Resume(named) => change(&named.name, "resume", client, output).await,
        SchedulesCommand::Fire(named) => {
            let fired = client.post(&["schedules", &named.name, "fire"], String::new()).await?;
            output.answer(&fired.text, || text(&fired.value, "id"));
            Ok(())
        }
        SchedulesCommand::Remove { name, yes } => remove(&name, yes, client, output).await,
    }
}

async fn list(paging: &Paging, client: &Client, output: Output) -> Result<(), CliError> {
    let names = ["NAME", "FIRES", "KIND", "NEXT", "LAST", "FIRED", "SKIPPED", "MISSED"];
    let listed = pages::read(&["schedules"], &[], paging, client).await?;
    listed.print(output, &names, row, "no schedules");
    Ok(())
}

async fn put(args: &PutSchedule, client: &Client, output: Output) -> Result<(), CliError> {
    let body = Body {
        cron: args.cron.as_deref(),
        zone: args.zone.as_deref(),
        every: args.every.as_deref(),
        overlap: args.overlap.as_deref(),
        catch_up: args.catch_up.as_deref(),
        job: BodyJob {
            kind: &args.kind,
            payload: submit::json("payload", &args.payload)?,
            tenant: args.tenant.as_deref(),
            priority: args.priority,
            delay: args.delay.as_deref(),
            group_key: args.group_key.as_deref(),
            shard_key: args.shard_key.as_deref(),
            attempts_max: args.attempts_max,
            attempt_timeout: args.attempt_timeout.as_deref(),
            backoff: args.backoff.as_deref(),
        },
    };
    let body = serde_json::to_string(&body).map_err(|error| CliError::new(exit::FAILED, error))?;
    changed(&client.put(&["schedules", &args.name], body).await?, output);
    Ok(())
}

async fn change(name: &str, verb: &str, client: &Client, output: Output) -> Result<(), CliError> {
    changed(&client.post(&["schedules", name, verb], String::new()).await?, output);
    Ok(())
}

/// Removes a schedule after confirmation.
async fn remove(name: &str, yes: bool, client: &Client, output: Output) -> Result<(), CliError> {
    if Consent::Always.asking(yes)? == Asking::Yes {
        let known = client.get(&["schedules", name], &[]).await?.value;
        let question = format!("Remove the schedule {name}, which fires {}?", timing(&known));
        confirm::ask(&question, output)?;
    }
    let removed = client.delete(&["schedules", name]).await?;
    output.answer(&removed.text, || format!("{} removed", inline(name)));
    Ok(())
}

fn row(schedule: &Value) -> Vec<String> {
    vec![
        text(schedule, "name"),
        timing(schedule),
        text(&schedule["job"], "kind"),
        next(schedule),
        text(&schedule["last"], "instant"),
        text(schedule, "fired"),
        text(schedule, "skipped"),
        text(schedule, "missed"),
    ]
}

/// Prints a schedule that was changed.
fn changed(schedule: &Document, output: Output) {
    output.answer(&schedule.text, || {
        let schedule = &schedule.value;
        format!("{} fires {}, next {}", text(schedule, "name"), timing(schedule), next(schedule))
    });
}

fn timing(schedule: &Value) -> String {
    if schedule["cron"].is_string() {
        format!("{} {}", text(schedule, "cron"), text(schedule, "zone"))
    } else {
        format!("every {}", text(schedule, "every"))
    }
}

fn next(schedule: &Value) -> String {
    if schedule["paused"] == true {
        return "paused".to_owned();
    }
    schedule["next"][0].as_str().map_or_else(|| "-".to_owned(), inline)
}

/// Formats a schedule for people.
fn described(schedule: &Value) -> String {
    let mut rows = vec![
        vec!["schedule".to_owned(), text(schedule, "name")],
        vec!["fires".to_owned(), timing(schedule)],
        vec![
            "status".to_owned(),
            if schedule["paused"] == true { "paused" } else { "active" }.to_owned(),
        ],
        vec!["kind".to_owned(), text(&schedule["job"], "kind")],
        vec!["tenant".to_owned(), text(&schedule["job"], "tenant")],
        vec!["payload".to_owned(), text(&schedule["job"], "payload")],
        vec!["overlap".to_owned(), text(schedule, "overlap")],
        vec!["catch up".to_owned(), text(schedule, "catch_up")],
        vec!["last".to_owned(), text(&schedule["last"], "instant")],
        vec!["last job".to_owned(), text(&schedule["last"], "job")],
    ];
    for name in ["fired", "skipped", "missed"] {
        rows.push(vec![name.to_owned(), text(schedule, name)]);
    }
    if schedule["failure"].is_string() {
        rows.push(vec!["failure".to_owned(), text(schedule, "failure")]);
    }
    let next = schedule["next"].as_array().into_iter().flatten();
    let next = next.filter_map(Value::as_str).map(|at| vec![inline(at)]);
    format!("{}\n\n{}", table(&[], rows), table(&["NEXT"], next))
}
