//! The settings for notices: the section `notify`.

use super::http::Target;
use super::secret_text::SecretText;
use super::sign::Signing;
use crate::callback::{CalleeUrl, Path, substitute};
use rewheel::duration;
use rewheel_core::{KindName, NameError, Tenant};
use rewheel_engine::notify::{Event, NotifySettings, Route, Severity};
use serde::de::{Error, IntoDeserializer as _};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Maximum number of routes.
const ROUTES_MAX: usize = 64;

/// The section `notify`.
///
/// ```
/// use rewheel_server::notify::{NotifyConfig, NotifyTarget};
///
/// let config: NotifyConfig = toml::from_str(
///     r#"
///     window_max = 20
///     [[route]]
///     to = "slack"
///     url = "${SLACK_URL}"
///     events = ["dead_letter", "kind_parked"]
///     "#,
/// )?;
/// assert_eq!((config.window_max, config.route[0].to.clone()), (20, NotifyTarget::Slack.into()));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyConfig {
    /// In this time a route receives at most `window_max` notices; a summary follows at its end.
    #[serde(with = "duration::serde")]
    pub window: Duration,
    /// Maximum number of notices per route and window.
    pub window_max: u32,
    /// Maximum number of notices that wait for one route.
    pub queue_max: usize,
    /// Timeout for one delivery attempt.
    #[serde(with = "duration::serde")]
    pub timeout: Duration,
    /// The notification routes.
    pub route: Vec<RouteConfig>,
}

impl Default for NotifyConfig {
    fn default() -> NotifyConfig {
        let NotifySettings { window, window_max, queue_max, timeout } = NotifySettings::default();
        NotifyConfig { window, window_max, queue_max, timeout, route: Vec::new() }
    }
}

impl NotifyConfig {
    /// Returns the settings that the engine needs.
    pub fn settings(&self) -> NotifySettings {
        let NotifyConfig { window, window_max, queue_max, timeout, route: _ } = *self;
        NotifySettings { window, window_max, queue_max, timeout }
    }

    /// Returns an invalid key of the section, and why.
    pub(crate) fn check(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), (String, String)> {
        self.settings().check().map_err(|error| {
            let text = error.to_string();
            let (key, why) = text.split_once(": ").unwrap_or(("", &text));
            (key.to_owned(), why.to_owned())
        })?;
        if self.route.len() > ROUTES_MAX {
            return Err(("route".to_owned(), format!("must have {ROUTES_MAX} entries or fewer")));
        }
        for (index, route) in self.route.iter().enumerate() {
            route
                .target(variable)
                .map_err(|error| (format!("route.{index}.{}", error.key), error.why))?;
        }
        Ok(())
    }
}

/// The destination of notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyTarget {
    /// The log of this process.
    #[default]
    Log,
    /// A URL that receives JSON.
    Webhook,
    /// An incoming webhook of Slack, or a compatible one.
    Slack,
    /// A custom bot of Feishu or Lark.
    Feishu,
    /// A custom robot of DingTalk.
    #[serde(rename = "dingtalk")]
    DingTalk,
}

impl NotifyTarget {
    /// Returns the name used in the config.
    pub const fn as_str(self) -> &'static str {
        match self {
            NotifyTarget::Log => "log",
            NotifyTarget::Webhook => "webhook",
            NotifyTarget::Slack => "slack",
            NotifyTarget::Feishu => "feishu",
            NotifyTarget::DingTalk => "dingtalk",
        }
    }
}

impl fmt::Display for NotifyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTarget {
    /// To a receiver of messages.
    Message(NotifyTarget),
    /// To a job of this kind, one for each dead letter: `job:refund`.
    Job(KindName),
}

impl Default for RouteTarget {
    fn default() -> RouteTarget {
        RouteTarget::Message(NotifyTarget::default())
    }
}

impl From<NotifyTarget> for RouteTarget {
    fn from(target: NotifyTarget) -> RouteTarget {
        RouteTarget::Message(target)
    }
}

impl fmt::Display for RouteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteTarget::Message(target) => target.fmt(f),
            RouteTarget::Job(kind) => write!(f, "job:{kind}"),
        }
    }
}

impl<'de> Deserialize<'de> for RouteTarget {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<RouteTarget, D::Error> {
        let text = String::deserialize(from)?;
        let Some(kind) = text.strip_prefix("job:") else {
            return NotifyTarget::deserialize(text.into_deserializer()).map(RouteTarget::Message);
        };
        let wrong = |why: &dyn fmt::Display| {
            D::Error::custom(format_args!("`{kind}` is not a valid kind: a kind {why}"))
        };
        let kind = KindName::parse(kind).map_err(|why| wrong(&why))?;
        if kind.is_reserved() {
            return Err(wrong(&"must not begin with `rewheel.`: these kinds are reserved"));
        }
        Ok(RouteTarget::Job(kind))
    }
}

/// One entry of `notify.route`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// The destination.
    pub to: RouteTarget,
    /// The URL; `${NAME}` is an environment variable.
    pub url: Option<SecretText>,
    /// The signing secrets; each adds a signature. `${NAME}` is an environment variable.
    #[serde(default)]
    pub secrets: Vec<SecretText>,
    /// Only these events; all if empty.
    #[serde(default, deserialize_with = "each")]
    pub events: Vec<Event>,
    /// Only these kinds; all if empty.
    #[serde(default, deserialize_with = "names")]
    pub kinds: Vec<KindName>,
    /// Only these tenants; all if empty.
    #[serde(default, deserialize_with = "names")]
    pub tenants: Vec<Tenant>,
    /// Only this severity or higher.
    #[serde(default, deserialize_with = "one")]
    pub severity: Severity,
}

impl RouteConfig {
    /// Returns the filter of this route.
    pub fn route(&self) -> Route {
        Route {
            events: self.events.clone(),
            kinds: self.kinds.clone(),
            tenants: self.tenants.clone(),
            severity: self.severity,
        }
    }

    /// Returns the HTTP destination; `None` for the log and for jobs.
    pub(super) fn target(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Target>, RouteError> {
        let to = match &self.to {
            RouteTarget::Message(to) => *to,
            RouteTarget::Job(kind) => return self.check_job(kind).map(|()| None),
        };
        let url = match (to, &self.url) {
            (NotifyTarget::Log, Some(_)) => {
                return Err(RouteError::new("url", "does not apply to `log`: remove this setting"));
            }
            (NotifyTarget::Log, None) if !self.secrets.is_empty() => {
                return Err(RouteError::new(
                    "secrets",
                    "does not apply to `log`: remove this setting",
                ));
            }
            (NotifyTarget::Log, None) => return Ok(None),
            (to, None) => {
                return Err(RouteError::new("url", format!("is required for `{to}`")));
            }
            (_, Some(url)) => url,
        };
        let wrong = |why: String| RouteError::new("url", why);
        let url = substitute(url.expose(), variable).map_err(wrong)?;
        // The path of a chat webhook is often its secret.
        let url = CalleeUrl::parse(&url, Path::Secret).map_err(wrong)?;
        let signing = Signing::parse(to, &self.secrets, variable).map_err(|error| {
            let key = error.index.map_or("secrets".to_owned(), |index| format!("secrets.{index}"));
            RouteError { key, ..RouteError::new("secrets", error.why) }
        })?;
        Ok(Some(Target { to, url, signing }))
    }

    /// Checks a route to a job.
    fn check_job(&self, kind: &KindName) -> Result<(), RouteError> {
        let unused = "does not apply to a route that submits a job: remove this setting";
        if self.url.is_some() {
            return Err(RouteError::new("url", unused));
        }
        if !self.secrets.is_empty() {
            return Err(RouteError::new("secrets", unused));
        }
        let is_letter = |event: &Event| {
            matches!(event, Event::DeadLetter | Event::AttemptsExhausted | Event::NotRetryable)
        };
        if let Some(event) = self.events.iter().find(|event| !is_letter(event)) {
            let why = format!(
                "must not contain `{event}`: this route submits jobs only for dead letters"
            );
            return Err(RouteError::new("events", why));
        }
        if self.kinds.contains(kind) {
            let why = format!(
                "must not contain `{kind}`: its dead letters would submit jobs of the same kind forever"
            );
            return Err(RouteError::new("kinds", why));
        }
        Ok(())
    }
}

/// An invalid route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("notify.route.{index}.{key}: {why}")]
pub struct RouteError {
    index: usize,
    key: String,
    why: String,
}

impl RouteError {
    pub(super) fn new(key: &str, why: impl Into<String>) -> RouteError {
        RouteError { index: 0, key: key.to_owned(), why: why.into() }
    }

    pub(super) fn of(self, index: usize) -> RouteError {
        RouteError { index, ..self }
    }
}

fn one<'de, D: Deserializer<'de>>(from: D) -> Result<Severity, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

fn each<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Event>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

fn names<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = NameError>,
{
    let texts = Vec::<String>::deserialize(from)?;
    let parse = |text: &String| {
        text.parse().map_err(|error| {
            D::Error::custom(format_args!("`{text}` is not a valid name: a name {error}"))
        })
    };
    texts.iter().map(parse).collect()
}
