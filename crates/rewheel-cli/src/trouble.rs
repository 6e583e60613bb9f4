//! Why a command failed, and what the shell is told.

use crate::screen;
use rewheel_core::redact_urls;
use rewheel_core::store::StoreError;
use rewheel_engine::StartError;
use rewheel_server::ServeError;
use rewheel_server::config::ConfigError;
use rewheel_server::problem::Problem;
use rewheel_server::telemetry::TelemetryError;
use rewheel_stores::ConnectError;
#[cfg(feature = "postgres")]
use rewheel_stores::OptionsError;
use serde_json::{Value, json};

/// What a shell sees of a command that ended.
pub(crate) mod exit {
    /// It failed, or the doctor found something.
    pub(crate) const FAILED: u8 = 1;
    /// The arguments, the config or a value in the request are not valid.
    pub(crate) const USAGE: u8 = 2;
    /// A part of it failed.
    pub(crate) const PARTLY: u8 = 3;
    /// The server does not know who asks, or refuses them.
    pub(crate) const AUTH: u8 = 4;
    /// There is no such thing.
    pub(crate) const NOT_FOUND: u8 = 5;
    /// The state of things does not allow it.
    pub(crate) const CONFLICT: u8 = 6;
    /// The server or the store is not there.
    pub(crate) const UNAVAILABLE: u8 = 7;
    /// Somebody interrupted it.
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// A command failed.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// What the shell is told.
    pub(crate) code: u8,
    /// What happened.
    pub(crate) error: anyhow::Error,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// The problem document, if the server sent one.
    pub(crate) problem: Option<String>,
}

impl Trouble {
    pub(crate) fn new(code: u8, error: impl Into<anyhow::Error>) -> Trouble {
        Trouble { code, error: error.into(), hint: None, problem: None }
    }

    pub(crate) fn usage(message: String) -> Trouble {
        Trouble::new(exit::USAGE, anyhow::Error::msg(message))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Trouble {
        self.hint = Some(hint.into());
        self
    }

    /// Takes a problem document: the text of it, and what it says.
    pub(crate) fn of_answer(status: u16, document: String, problem: &Value) -> Trouble {
        let text = |name: &str| problem[name].as_str().map(screen::inline);
        let detail = text("detail").unwrap_or_else(|| format!("the server answered {status}"));
        let error = anyhow::Error::msg(with_errors(&detail, problem));
        let code = exit_code(status, problem["code"].as_str());
        Trouble { code, error, hint: text("hint"), problem: Some(document) }
    }

    /// Takes an error of a bench: a store that cannot be used has its own exit codes.
    pub(crate) fn of_bench(error: anyhow::Error) -> Trouble {
        let error = match error.downcast::<ConnectError>() {
            Ok(error) => return error.into(),
            Err(error) => error,
        };
        #[cfg(feature = "postgres")]
        if error.is::<OptionsError>() {
            return Trouble::new(exit::USAGE, error);
        }
        let is_network = error.chain().any(|cause| cause.is::<std::io::Error>());
        Trouble::new(if is_network { exit::UNAVAILABLE } else { exit::FAILED }, error)
    }

    /// Returns the error and its causes, without passwords of URLs.
    pub(crate) fn message(&self) -> String {
        redact_urls(&format!("{:#}", self.error))
    }

    /// Returns it as a problem document, as JSON text.
    pub(crate) fn document(&self) -> String {
        self.problem.clone().unwrap_or_else(|| {
            let hint = self.hint.as_deref().map(redact_urls);
            json!({ "detail": self.message(), "hint": hint }).to_string()
        })
    }
}

/// Lists the fields that are wrong, where the detail does not say it all.
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

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Trouble {
        let mut document = serde_json::to_value(problem.document("")).unwrap_or_default();
        hide_passwords(&mut document);
        Trouble::of_answer(problem.code.status(), document.to_string(), &document)
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

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Problem::from(error).into()
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Trouble {
        match error {
            ConnectError::Url { .. } | ConnectError::Setting { .. } => {
                Trouble::new(exit::USAGE, error)
            }
            #[cfg(feature = "postgres")]
            ConnectError::Options(error) => Trouble::new(exit::USAGE, error),
            ConnectError::Store(error @ StoreError::Unavailable(_)) => Trouble::from(error)
                .hint("check that the database server runs and that the store's URL is right"),
            ConnectError::Store(error) => error.into(),
        }
    }
}

impl From<ConfigError> for Trouble {
    fn from(error: ConfigError) -> Trouble {
        Trouble::new(exit::USAGE, error)
    }
}

impl From<TelemetryError> for Trouble {
    fn from(error: TelemetryError) -> Trouble {
        Trouble::new(exit::USAGE, error)
    }
}

impl From<ServeError> for Trouble {
    fn from(error: ServeError) -> Trouble {
        match error {
            ServeError::BeyondLoopback(_) | ServeError::Notify(_) | ServeError::Tls(_) => {
                Trouble::new(exit::USAGE, error)
            }
            ServeError::Listen { .. } => Trouble::new(exit::FAILED, error)
                .hint("another process may use the address: choose another with --listen, such as 127.0.0.1:0"),
            ServeError::Io(_) | ServeError::Engine(_) => Trouble::new(exit::FAILED, error),
            ServeError::Store(error) => error.into(),
            ServeError::Start(StartError::Store(error)) => error.into(),
            ServeError::Start(error) => Trouble::new(exit::USAGE, error),
            ServeError::Interrupted => Trouble::new(exit::INTERRUPTED, error),
        }
    }
}
