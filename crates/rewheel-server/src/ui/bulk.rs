//! Preview and start of bulk operations: what is shown is what is changed.

use super::documents::{Job, Operation, Preview};
use super::filter_box;
use super::finish::redirect;
use super::form::{Fields, Submitted};
use super::frame::{Frame, show_as};
use super::job::shell;
use super::jobs::{Row, with_query};
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{Number, Times};
use super::visitor::Visitor;
use crate::problem::Code;
use askama::Template;
use axum::extract::Path;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use rewheel_engine::BulkVerb;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How long a preview may be confirmed.
const VALID_FOR: Duration = Duration::from_secs(600);

/// Above this number of jobs, the visitor types it.
const TYPED_ABOVE: u64 = 1_000;

/// Names of the form that are options, not conditions.
const OPTIONS: [&str; 2] = ["rate", "canary"];

#[derive(Template)]
#[template(path = "bulk.html")]
struct PreviewPage {
    frame: Frame,
    verb: &'static str,
    verb_capital: String,
    /// The filter in words.
    words: String,
    filter: String,
    count: Number,
    exact_count: u64,
    is_complete: bool,
    examples: Vec<Row>,
    rate: String,
    canary: String,
    needs_typing: bool,
    issued: i64,
    signature: String,
    follows: &'static str,
    commands: Vec<(&'static str, String)>,
    back: String,
    /// Why the form came back.
    wrong: Option<String>,
}

/// What a preview is about.
struct Plan {
    verb: BulkVerb,
    /// The conditions, as plain parameters.
    filter: Vec<(String, String)>,
    rate: String,
    canary: String,
}

impl Plan {
    fn read(visitor: &Visitor, verb: &str, fields: &Fields) -> Result<Plan, Refusal> {
        let verb = verb.parse().map_err(|_| {
            Refusal::new(Code::NotFound, &format!("there is no bulk operation `{verb}`"))
        })?;
        let is_condition =
            |name: &str| !OPTIONS.contains(&name) && !matches!(name, "cursor" | "limit");
        let filter =
            fields.pairs().iter().filter(|(name, value)| is_condition(name) && !value.is_empty());
        let text = |name| fields.text(name).to_owned();
        let mut filter: Vec<_> = filter.cloned().collect();
        let is_again = |(place, (name, _)): (usize, &(String, String))| {
            !matches!(name.as_str(), "state" | "kind")
                && filter[..place].iter().any(|(other, _)| other == name)
        };
        if let Some(place) = filter.iter().enumerate().position(is_again) {
            let detail = format!("`{}` occurs twice: name one value", filter[place].0);
            return Err(Refusal::new(Code::BadQuery, &detail));
        }
        // REST would add it: then the page says so.
        if let Some(tenant) = visitor.caller.tenant()
            && !filter.iter().any(|(name, _)| name == "tenant")
        {
            filter.push(("tenant".to_owned(), tenant.to_string()));
        }
        Ok(Plan { verb, filter, rate: text("rate"), canary: text("canary") })
    }

    /// Returns the body of the request to REST.
    fn body(&self, is_dry: bool) -> Result<String, Refusal> {
        let mut filter: Map<String, Value> = Map::new();
        for (name, value) in &self.filter {
            match (name.as_str(), filter.get_mut(name)) {
                ("state" | "kind", Some(Value::Array(values))) => values.push(json!(value)),
                ("state" | "kind", _) => {
                    filter.insert(name.clone(), json!([value]));
                }
                (_, _) => {
                    filter.insert(name.clone(), json!(value));
                }
            }
        }
        let mut body = json!({ "dry_run": is_dry });
        match filter.is_empty() {
            true => body["all"] = json!(true),
            false => body["filter"] = Value::Object(filter),
        }
        if !is_dry {
            if !self.rate.is_empty() {
                body["rate"] = json!(self.rate);
            }
            if !self.canary.is_empty() {
                body["canary"] = self.steps()?;
            }
        }
        Ok(body.to_string())
    }

    fn steps(&self) -> Result<Value, Refusal> {
        let steps =
            self.canary.split([',', ' ']).filter(|step| !step.is_empty()).map(str::parse::<u64>);
        let steps: Result<Vec<u64>, _> = steps.collect();
        let wrong =
            |_| Refusal::new(Code::InvalidField, "canary must be numbers of jobs such as 1,10,100");
        steps.map(Value::from).map_err(wrong)
    }

    /// The text that the form must bring back unchanged.
    fn signed_text(&self, count: u64, issued: i64) -> String {
        format!("{} {count} {issued} {}", self.verb, filter_box::query(&self.filter))
    }

    fn path(&self) -> String {
        format!("/v1/jobs/{}", self.verb)
    }
}

/// `GET /ui/bulk/{verb}`: counts, and changes nothing.
pub(super) async fn preview(
    visitor: Visitor,
    Path(verb): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let plan = Plan::read(&visitor, &verb, &Fields::read(uri.query().unwrap_or_default()))?;
    show_preview(&visitor, plan, None).await
}

async fn show_preview(
    visitor: &Visitor,
    plan: Plan,
    wrong: Option<String>,
) -> Result<Response, Refusal> {
    let counted = count(visitor, &plan).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let mut examples = Vec::new();
    for id in counted.sample.iter().take(5) {
        if let Ok(job) = visitor.get::<Job>(&format!("/v1/jobs/{id}")).await {
            examples.push(Row::new(&job, &times));
        }
    }
    let issued = visitor.now.as_millis();
    let verb = plan.verb.as_str();
    let back: Vec<_> = plan.filter.iter().filter(|(name, _)| name != "incident").cloned().collect();
    let incident = plan.filter.iter().find(|(name, _)| name == "incident");
    let status = if wrong.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let page = PreviewPage {
        frame: visitor.frame(&format!("Preview: {verb}"), "jobs"),
        verb,
        verb_capital: format!("{}{}", verb[..1].to_uppercase(), &verb[1..]),
        words: words(&plan.filter),
        filter: filter_box::query(&plan.filter),
        count: Number(counted.count),
        exact_count: counted.count,
        is_complete: counted.complete,
        examples,
        needs_typing: needs_typing(plan.verb, counted.count),
        issued,
        signature: visitor.secret.sign(&plan.signed_text(counted.count, issued)),
        follows: follows(plan.verb),
        commands: commands(visitor, &plan)?,
        back: match incident {
            Some((_, id)) => visitor.link(&format!("/incidents/{}", super::shown::segment(id))),
            None => visitor.link(&with_query("/jobs", &back)),
        },
        rate: plan.rate,
        canary: plan.canary,
        wrong,
    };
    Ok(show_as(status, &page))
}

async fn count(visitor: &Visitor, plan: &Plan) -> Result<Preview, Refusal> {
    let body = plan.body(true)?;
    visitor.ask(Method::POST, &plan.path(), Sent { body: &body, if_match: None }).await?.read()
}

fn needs_typing(verb: BulkVerb, count: u64) -> bool {
    count > TYPED_ABOVE || verb == BulkVerb::Cancel
}

fn words(filter: &[(String, String)]) -> String {
    if filter.is_empty() {
        return "every job".to_owned();
    }
    let word = |(name, value): &(String, String)| format!("{} is {value}", name.replace('_', " "));
    filter.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn follows(verb: BulkVerb) -> &'static str {
    match verb {
        BulkVerb::Cancel => "Cancelled jobs never run again. This cannot be undone.",
        BulkVerb::Pause => "The jobs do not run until an operator resumes them.",
        BulkVerb::Resume => "The jobs run when they are due.",
        BulkVerb::Retry => "The jobs are due now.",
        BulkVerb::Redrive => "The dead letters run again, with a full number of attempts.",
    }
}

/// The same request in other tools.
fn commands(visitor: &Visitor, plan: &Plan) -> Result<Vec<(&'static str, String)>, Refusal> {
    let (token, body) = (visitor.curl_token(), shell(&plan.body(false)?));
    let url = shell(&format!("{}{}", visitor.server(), plan.path()));
    let curl = format!("curl -fsS -X POST{token} {url} -d {body}");
    Ok(vec![("curl", curl)])
}

/// `POST /ui/bulk/{verb}`: starts the operation that was shown.
pub(super) async fn start(Path(verb): Path<String>, form: Submitted) -> Result<Response, Refusal> {
    let (visitor, fields) = (&form.visitor, &form.fields);
    let mut plan =
        Plan::read(visitor, &verb, &Fields::read(fields.exact("filter").unwrap_or_default()))?;
    plan.rate = fields.text("rate").to_owned();
    plan.canary = fields.text("canary").to_owned();
    let count_shown: u64 = fields.text("count").parse().unwrap_or(u64::MAX);
    let issued: i64 = fields.text("issued").parse().unwrap_or(0);
    if !visitor.secret.signed(&plan.signed_text(count_shown, issued), fields.text("signature")) {
        let detail = "the form was changed, or is of another session; nothing was changed";
        return Err(Refusal::new(Code::Forbidden, detail).hint("open the preview again"));
    }
    let age = visitor.now.as_millis().saturating_sub(issued).unsigned_abs();
    if u128::from(age) > VALID_FOR.as_millis() {
        let wrong =
            "This preview was older than 10 minutes. Nothing was changed; here is a new one.";
        return show_preview(visitor, plan, Some(wrong.to_owned())).await;
    }
    if needs_typing(plan.verb, count_shown)
        && fields.text("typed").replace(',', "") != count_shown.to_string()
    {
        let wrong =
            format!("Type the number of jobs, {count_shown}, to confirm. Nothing was changed.");
        return show_preview(visitor, plan, Some(wrong)).await;
    }
    let counted = count(visitor, &plan).await?;
    if counted.count.abs_diff(count_shown) > count_shown / 10 {
        let wrong = format!(
            "The filter matched {count_shown} jobs, and matches {} now. Nothing was changed; look again.",
            counted.count
        );
        return show_preview(visitor, plan, Some(wrong)).await;
    }
    let body = plan.body(false)?;
    let started =
        visitor.ask(Method::POST, &plan.path(), Sent { body: &body, if_match: None }).await;
    match started {
        Ok(answer) => {
            let operation: Operation = answer.read()?;
            Ok(redirect(&visitor.link(&format!("/operations/{}", operation.id))))
        }
        Err(refusal) if refusal.is(Code::InvalidField) => {
            show_preview(visitor, plan, Some(format!("{}. Nothing was changed.", refusal.detail)))
                .await
        }
        Err(refusal) => Err(refusal),
    }
}
