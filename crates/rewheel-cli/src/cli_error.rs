//! The error type of commands, with exit codes and hints.

use crate::screen;
use rewheel_core::redact_urls;
use rewheel_core::store::StoreError;
use rewheel_engine::{ScheduleError, StartError};
use rewheel_server::ServeError;
use rewheel_server::config::ConfigError;
use rewheel_server::problem::Problem;
use rewheel_server::telemetry::TelemetryError;
use rewheel_stores::ConnectError;
#[cfg(feature = "postgres")]
use rewheel_stores::OptionsError;
use serde_json::{Value, json};

/// The exit codes.
pub(crate) mod exit {
    /// The command failed, or `rewheel doctor` found a problem.
    pub(crate) const FAILED: u8 = 1;
    /// The arguments, the config or a value in the request are not valid.
    pub(crate) const USAGE: u8 = 2;
    /// The command failed for some jobs.
    pub(crate) const PARTLY: u8 = 3;
    /// Authentication failed, or permission was denied.
    pub(crate) const AUTH: u8 = 4;
    /// The resource does not exist.
    pub(crate) const NOT_FOUND: u8 = 5;
    /// The current state of the resource does not allow the request.
    pub(crate) const CONFLICT: u8 = 6;
    /// The server or the store is unavailable.
    pub(crate) const UNAVAILABLE: u8 = 7;
    /// The command was interrupted.
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// An error of a command.
#[derive(Debug)]
pub(crate) struct CliError {
    /// The exit code.
    pub(crate) code: u8,
    /// The cause.
    pub(crate) error: anyhow::Error,
    /// What to do about the error.
    pub(crate) hint: Option<String>,
    /// The problem document, if the server sent one.
    pub(crate) problem: Option<String>,
}

impl CliError {
    pub(crate) fn new(code: u8, error: impl Into<anyhow::Error>) -> CliError {
        CliError { code, error: error.into(), hint: None, problem: None }
    }

    pub(crate) fn usage(message: String) -> CliError {
        CliError::new(exit::USAGE, anyhow::Error::msg(message))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> CliError {
        self.hint = Some(hint.into());
        self
    }

    /// Builds the error from a problem document: its text and its parsed value.
    pub(crate) fn of_answer(status: u16, document: String, problem: &Value) -> CliError {
        let text = |name: &str| problem[name].as_str().map(screen::inline);
        let detail = text("detail").unwrap_or_else(|| format!("the server answered {status}"));
        let error = anyhow::Error::msg(with_errors(&detail, problem));
        let code = exit_code(status, problem["code"].as_str());
        CliError { code, error, hint: text("hint"), problem: Some(document) }
    }

    /// Builds the error of a benchmark: store errors have their own exit codes.
    pub(crate) fn of_bench(error: anyhow::Error) -> CliError {
        let error = match error.downcast::<ConnectError>() {
            Ok(error) => return error.into(),
            Err(error) => error,
        };
        #[cfg(feature = "postgres")]
        if error.is::<OptionsError>() {
            return CliError::new(exit::USAGE, error);
        }
        let is_network = error.chain().any(|cause| cause.is::<std::io::Error>());
        CliError::new(if is_network { exit::UNAVAILABLE } else { exit::FAILED }, error)
    }

    /// Returns the error and its causes, without passwords of URLs.
    pub(crate) fn message(&self) -> String {
        redact_urls(&format!("{:#}", self.error))
    }

    /// Returns the error as a problem document in JSON.
    pub(crate) fn document(&self) -> String {
        self.problem.clone().unwrap_or_else(|| {
            let hint = self.hint.as_deref().map(redact_urls);
            json!({ "detail": self.message(), "hint": hint }).to_string()
        })
    }
}

/// Adds the invalid fields, if the detail does not name them all.
fn with_errors(detail: &str, problem: &Value) -> String {
    let errors = problem["errors"].as_array();
    let mut text = detail.to_owned();
    if let Some(errors) = errors.filter(|errors| errors.len() > 1) {
        for error in errors {
            let part = |name: &str| screen::text(error, name);
            text.push_str(&format!("\n  {} {}", part("field"), part("message")));
        }
    }
    text
}

/// Returns the exit code for the status of an answer and the code of its problem document.
fn exit_code(status: u16, code: Option<&str>) -> u8 {
    match (status, code) {
        // The server rejects a value that was given to the command.
        (400, Some("bad_query" | "bad_json")) | (422, Some("invalid_field")) => exit::USAGE,
        (401 | 403, _) => exit::AUTH,
        (404, _) => exit::NOT_FOUND,
        (409 | 412, _) => exit::CONFLICT,
        (502..=504 | 507, _) => exit::UNAVAILABLE,
        _ => exit::FAILED,
    }
}

impl From<Problem> for CliError {
    fn from(problem: Problem) -> CliError {
        let mut document = serde_json::to_value(problem.document("")).unwrap_or_default();
        hide_passwords(&mut document);
        CliError::of_answer(problem.code.status(), document.to_string(), &document)
    }
}

fn hide_passwords(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact_urls(text),
        Value::Array(items) => items.iter_mut().for_each(hide_passwords),
        Value::Object(fields) => fields.values_mut().for_each(hide_passwords),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> CliError {
        Problem::from(error).into()
    }
}

impl From<ConnectError> for CliError {
    fn from(error: ConnectError) -> CliError {
        match error {
            ConnectError::Url { .. } | ConnectError::Setting { .. } => {
                CliError::new(exit::USAGE, error)
            }
            #[cfg(feature = "postgres")]
            ConnectError::Options(error) => CliError::new(exit::USAGE, error),
            #[cfg(feature = "mysql")]
            ConnectError::MysqlOptions(error) => CliError::new(exit::USAGE, error),
            #[cfg(feature = "redis")]
            ConnectError::RedisOptions(error) => CliError::new(exit::USAGE, error),
            ConnectError::Store(error @ StoreError::Unavailable(_)) => CliError::from(error)
                .hint("check that the database server runs and that the store's URL is right"),
            ConnectError::Store(error) => error.into(),
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> CliError {
        CliError::new(exit::USAGE, error)
    }
}

impl From<TelemetryError> for CliError {
    fn from(error: TelemetryError) -> CliError {
        CliError::new(exit::USAGE, error)
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> CliError {
        match error {
            ServeError::BeyondLoopback(_) | ServeError::Notify(_) | ServeError::Tls(_) => {
                CliError::new(exit::USAGE, error)
            }
            ServeError::Listen { .. } => CliError::new(exit::FAILED, error)
                .hint("if another process uses this address, choose another one with --listen; port 0 takes any free port"),
            ServeError::Io(_) | ServeError::Engine(_) => CliError::new(exit::FAILED, error),
            ServeError::Schedule { source: ScheduleError::Store(error), .. } => error.into(),
            ServeError::Schedule { source: ScheduleError::Busy, .. } => CliError::new(exit::FAILED, error),
            ServeError::Schedule { .. } => CliError::new(exit::USAGE, error),
            ServeError::Store(error) => error.into(),
            ServeError::Pause(error) => error.into(),
            ServeError::Start(StartError::Store(error)) => error.into(),
            ServeError::Start(error) => CliError::new(exit::USAGE, error),
            ServeError::Interrupted => CliError::new(exit::INTERRUPTED, error),
        }
    }
}
