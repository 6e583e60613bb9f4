//! Kinds: their state, breaker and settings.

use super::chart::{Charts, Timeline};
use super::confirm::{self, Question};
use super::documents::{Incidents, Kind, Listed};
use super::finish::redirect;
use super::form::Submitted;
use super::frame::{Frame, show};
use super::incidents::IncidentRow;
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{Instant, Mark, Number, Times, segment};
use super::visitor::Visitor;
use crate::config::DefaultValue;
use crate::config::SETTINGS;
use crate::problem::Code;
use askama::Template;
use axum::extract::Path;
use axum::http::{Method, Uri};
use axum::response::Response;
use rewheel_core::KindName;
use serde_json::Value;
use url::form_urlencoded;

/// Kinds that one page shows.
const KINDS_MAX: usize = 1_000;

#[derive(Template)]
#[template(path = "kinds.html")]
struct ListPage {
    frame: Frame,
    rows: Vec<KindRow>,
    is_cut: bool,
}

/// A kind in a list.
#[derive(Clone, Debug)]
pub(super) struct KindRow {
    pub(super) kind: String,
    pub(super) runner: String,
    pub(super) state: Mark,
    pub(super) why: String,
    pub(super) scheduled: Number,
    pub(super) leased: Number,
    pub(super) paused: Number,
    pub(super) dead: Number,
    pub(super) oldest: Option<Instant>,
    /// Larger for kinds that need attention.
    pub(super) trouble: u64,
}

impl KindRow {
    pub(super) fn new(kind: &Kind, times: &Times) -> KindRow {
        let waits = kind.jobs.scheduled > 0;
        let (state, word, why, weight) = match kind {
            Kind { paused: true, .. } => {
                ("paused", "paused", "an operator paused this kind".to_owned(), 3)
            }
            Kind { parked: true, breaker, .. } => ("parked", "parked", parked(breaker, times), 4),
            Kind { runnable: false, .. } if waits => (
                "scheduled",
                "not here",
                "this node cannot run it; other nodes or workers may".to_owned(),
                1,
            ),
            Kind { runnable: false, .. } => ("cancelled", "not here", String::new(), 0),
            _ => ("succeeded", "runs", String::new(), 0),
        };
        KindRow {
            kind: kind.kind.clone(),
            runner: kind.runner.clone(),
            state: Mark::with(state, word),
            why,
            scheduled: Number(kind.jobs.scheduled),
            leased: Number(kind.jobs.leased),
            paused: Number(kind.jobs.paused),
            dead: Number(kind.jobs.dead),
            oldest: times.maybe(kind.oldest_due.as_deref()),
            trouble: weight * 1_000_000_000 + kind.jobs.dead.min(999_999_999),
        }
    }
}

fn parked(breaker: &super::documents::Breaker, times: &Times) -> String {
    let since = breaker.since.as_deref().map(|since| format!("parked {}: ", times.at(since).ago));
    let reason = breaker.reason.as_deref().unwrap_or("the circuit breaker is open");
    format!("{}{reason}", since.unwrap_or_default())
}

/// Returns the kinds, those in trouble first.
pub(super) async fn rows(visitor: &Visitor) -> Result<(Vec<KindRow>, Vec<Kind>, bool), Refusal> {
    let listed: Listed<Kind> = visitor.get(&format!("/v1/kinds?limit={KINDS_MAX}")).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let is_own = |kind: &&Kind| !kind.kind.starts_with("rewheel.");
    let kinds: Vec<Kind> = listed.items.iter().filter(is_own).cloned().collect();
    let mut rows: Vec<KindRow> = kinds.iter().map(|kind| KindRow::new(kind, &times)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.trouble));
    Ok((rows, kinds, listed.next.is_some()))
}

/// `GET /ui/kinds`
pub(super) async fn list(visitor: Visitor) -> Result<Response, Refusal> {
    let (rows, _, is_cut) = rows(&visitor).await?;
    Ok(show(&ListPage { rows, is_cut, frame: visitor.frame("Kinds", "kinds").live() }))
}

#[derive(Template)]
#[template(path = "kind.html")]
struct KindPage {
    frame: Frame,
    kind: Kind,
    row: KindRow,
    breaker: String,
    verbs: Vec<Verb>,
    limits: Vec<(&'static str, String)>,
    rules: Vec<String>,
    incidents: Vec<IncidentRow>,
    charts: Charts,
}

/// A change of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verb {
    name: &'static str,
    label: &'static str,
    path: &'static str,
    follows: &'static [&'static str],
}

const VERBS: [Verb; 5] = [
    Verb {
        name: "pause",
        label: "Pause",
        path: "pause",
        follows: &[
            "No new attempt of this kind starts on any node. Running attempts finish.",
            "Submits are still accepted; the jobs wait until an operator resumes the kind.",
        ],
    },
    Verb {
        name: "resume",
        label: "Resume",
        path: "resume",
        follows: &["Its waiting jobs start, as far as its limits allow."],
    },
    Verb {
        name: "breaker-open",
        label: "Open breaker",
        path: "breaker/open",
        follows: &[
            "No attempt of this kind starts until the breaker is closed or reset. The server does not probe by itself.",
        ],
    },
    Verb {
        name: "breaker-close",
        label: "Close breaker",
        path: "breaker/close",
        follows: &[
            "All its jobs may start now. The breaker stays closed even if jobs fail, until it is reset.",
        ],
    },
    Verb {
        name: "breaker-reset",
        label: "Reset breaker",
        path: "breaker/reset",
        follows: &[
            "The breaker is automatic again: failures open it, and a successful probe closes it.",
        ],
    },
];

fn fitting(kind: &Kind) -> Vec<Verb> {
    let fits = |verb: &Verb| match verb.name {
        "pause" => !kind.paused,
        "resume" => kind.paused,
        "breaker-open" => !kind.parked,
        "breaker-close" => kind.parked,
        _ => kind.parked || kind.breaker.forced,
    };
    VERBS.into_iter().filter(fits).collect()
}

fn known(verb: &str) -> Result<Verb, Refusal> {
    let found = VERBS.into_iter().find(|known| known.name == verb);
    found.ok_or_else(|| Refusal::new(Code::NotFound, &format!("there is no page for `{verb}`")))
}

/// `GET /ui/kinds/{kind}`
pub(super) async fn page(
    visitor: Visitor,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let kind: Kind = visitor.get(&format!("/v1/kinds/{}", segment(&name))).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let incidents: Incidents =
        visitor.get(&format!("/v1/incidents?limit=10&kind={}", segment(&name))).await?;
    let query = uri.query().unwrap_or_default();
    let done = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "done");
    let done = done.and_then(|(_, done)| known(&done).ok());
    let timeline = Timeline::read(&visitor, Some(&kind.kind), &uri).await?;
    Ok(show(&KindPage {
        row: KindRow::new(&kind, &times),
        breaker: breaker(&kind, &times),
        verbs: if visitor.operates_all() { fitting(&kind) } else { Vec::new() },
        limits: limits(&kind),
        rules: rules(&kind),
        charts: Charts::new(
            visitor.link(&format!("/kinds/{}", kind.kind)),
            &timeline,
            vec![
                timeline.settled("c-settled", "Jobs per minute"),
                timeline.durations("c-took", "Duration of attempts"),
                timeline.lateness("c-late", "From due to start"),
            ],
        ),
        incidents: incidents.items.iter().map(|one| IncidentRow::new(one, &times)).collect(),
        frame: visitor
            .frame(&format!("Kind {}", kind.kind), "kinds")
            .live()
            .notice(done.map(|verb| format!("{}: done.", verb.label))),
        kind,
    }))
}

fn breaker(kind: &Kind, times: &Times) -> String {
    let breaker = &kind.breaker;
    let forced = if breaker.forced { ", by an operator" } else { "" };
    let until = breaker.until.as_deref().map(|until| format!(" until {}", times.at(until).ago));
    format!("{}{forced}{}", breaker.state.replace('_', " "), until.unwrap_or_default())
}

fn limits(kind: &Kind) -> Vec<(&'static str, String)> {
    let names = [
        "concurrency_max",
        "fleet_concurrency_max",
        "rate",
        "retry_budget",
        "attempts_max",
        "attempt_timeout",
        "backoff",
    ];
    let shown = |name: &'static str| {
        let value = kind.settings.get(name).filter(|value| !value.is_null())?;
        Some((name, plain(value)))
    };
    names.into_iter().filter_map(shown).collect()
}

fn rules(kind: &Kind) -> Vec<String> {
    let rules = kind.settings.get("rules").and_then(Value::as_array);
    rules.into_iter().flatten().map(plain).collect()
}

/// Shows a value without the quotes of a text.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A setting of a kind.
struct SettingRow {
    name: String,
    value: String,
    default: String,
    origin: &'static str,
    meaning: &'static str,
}

#[derive(Template)]
#[template(path = "kind_settings.html")]
struct SettingsPage {
    frame: Frame,
    kind: String,
    is_managed: bool,
    rows: Vec<SettingRow>,
}

/// `GET /ui/kinds/{kind}/settings`: value, default and origin of each setting.
pub(super) async fn settings(
    visitor: Visitor,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let kind: Kind = visitor.get(&format!("/v1/kinds/{}", segment(&name))).await?;
    let config = visitor.ui.app.config();
    let is_managed = KindName::parse(&kind.kind).is_ok_and(|name| config.kinds.contains_key(&name));
    let origin = if is_managed { "config file" } else { "store" };
    let defaults =
        serde_json::to_value(rewheel_engine::KindSettings::default()).unwrap_or_default();
    let row = |(name, value): (&String, &Value)| {
        let described = SETTINGS.iter().find(|one| one.section == "kinds.*" && one.name == name);
        let default = defaults.get(name).cloned().unwrap_or_default();
        SettingRow {
            name: name.clone(),
            value: plain(value),
            default: match described.map(|one| one.default) {
                Some(DefaultValue::Is(default)) => default.trim_matches('"').to_owned(),
                Some(DefaultValue::Unset(_)) | None => plain(&default),
            },
            origin: if *value == default { "default" } else { origin },
            meaning: described.map_or("", |one| one.meaning),
        }
    };
    let rows = kind.settings.iter().filter(|(_, value)| !value.is_null()).map(row).collect();
    let frame = visitor.frame(&format!("Settings of {}", kind.kind), "kinds");
    Ok(show(&SettingsPage { frame, kind: kind.kind.clone(), is_managed, rows }))
}

/// `GET /ui/kinds/{kind}/{verb}`
pub(super) async fn ask(
    visitor: Visitor,
    Path((name, verb)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let (name, verb) = (segment(&name), known(&verb)?);
    let kind: Kind = visitor.get(&format!("/v1/kinds/{name}")).await?;
    let jobs = kind.jobs;
    let mut follows: Vec<String> = verb.follows.iter().map(|text| (*text).to_owned()).collect();
    follows.push(format!(
        "Now: {} scheduled, {} running, {} paused, {} dead letters.",
        jobs.scheduled, jobs.leased, jobs.paused, jobs.dead
    ));
    let page = visitor.link(&format!("/kinds/{name}"));
    let label = verb.label.to_lowercase();
    Ok(confirm::ask(
        &visitor,
        Question {
            title: format!("{}: {label}", kind.kind),
            here: "kinds",
            follows,
            action: format!("{page}/{}", verb.name),
            button: verb.label.to_owned(),
            back: page,
            fields: Vec::new(),
            is_dangerous: matches!(verb.name, "pause" | "breaker-open" | "breaker-close"),
        },
    ))
}

/// `POST /ui/kinds/{kind}/{verb}`
pub(super) async fn change(
    Path((name, verb)): Path<(String, String)>,
    form: Submitted,
) -> Result<Response, Refusal> {
    let (name, verb) = (segment(&name), known(&verb)?);
    let path = format!("/v1/kinds/{name}/{}", verb.path);
    form.visitor.ask(Method::POST, &path, Sent::default()).await?;
    Ok(redirect(&form.visitor.link(&format!("/kinds/{name}?done={}", verb.name))))
}
