//! Shows the settings in force and where each comes from.

use super::environment::Overrides;
use super::location::{ConfigError, File};
use super::reference::{DefaultValue, SETTINGS, Setting};
use super::{Config, KindDefaults, Sections};
use crate::callback::{MASKED, masked};
use rewheel_core::{SecretUrl, masked_secret, masked_url, redact};
use serde::Serialize;
use std::path::Path;
use toml::{Table, Value};

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectiveSetting {
    /// The setting, such as `engine.lease_ttl`.
    pub key: String,
    /// The value, with secrets masked; `None` if it is not set.
    pub value: Option<Value>,
    /// The origin: `default`, a line of the file, or a variable.
    pub origin: String,
}

impl Config {
    /// Returns all settings in force, and the origin of each.
    ///
    /// ```
    /// use rewheel_server::config::Config;
    ///
    /// let env = [("REWHEEL__ENGINE__CONCURRENCY".to_owned(), "8".to_owned())];
    /// let settings = Config::in_force(None, env.into_iter())?;
    /// let shown = settings.iter().find(|setting| setting.key == "engine.concurrency").unwrap();
    /// assert_eq!(shown.value, Some(toml::Value::Integer(8)));
    /// assert_eq!(shown.origin, "REWHEEL__ENGINE__CONCURRENCY");
    /// # Ok::<(), rewheel_server::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn in_force(
        path: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Vec<EffectiveSetting>, ConfigError> {
        let file = match path {
            None => File::empty(),
            Some(path) => File::read(path)?,
        };
        let env = Overrides::of(env)?;
        Config::assemble(&file, &env)?;
        let table = env.table(&file)?;
        let filled = filled(&table);
        let told = |(key, setting): (String, &Setting)| {
            let value = at(&filled, &key).cloned();
            let (value, origin) = match (value, setting.default) {
                (Some(value), _) => {
                    let source = match at(&table, &key) {
                        Some(_) => key.clone(),
                        None => default_key(setting),
                    };
                    let by_env = env.error(&source).and_then(|error| error.place);
                    let by_file = || file.error(&source).place;
                    (Some(value), by_env.or_else(by_file).unwrap_or_default())
                }
                (None, DefaultValue::Is(text)) => (parsed(text), "default".to_owned()),
                (None, DefaultValue::Unset(_)) => (None, "default".to_owned()),
            };
            EffectiveSetting { value: value.map(|value| hidden(setting, value)), key, origin }
        };
        Ok(keys(&filled).into_iter().map(told).collect())
    }
}

impl Sections {
    /// Returns the user-chosen section names of a table.
    fn names(table: &Table, section: &str) -> Vec<String> {
        match at(table, section) {
            Some(Value::Table(inner)) => inner.keys().cloned().collect(),
            Some(Value::Array(list)) => (0..list.len()).map(|number| number.to_string()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns every key: those of the reference, once for each name.
fn keys(table: &Table) -> Vec<(String, &'static Setting)> {
    let mut keys = Vec::new();
    for part in SETTINGS.chunk_by(|one, other| one.section == other.section) {
        let section = part[0].section;
        // Defaults of kinds have no value of their own: only those that are set are shown.
        if section.starts_with("kinds.*") {
            let set = part.iter().map(|one| (default_key(one), one));
            keys.extend(set.filter(|(key, _)| at(table, key).is_some()));
        }
        let sections: Vec<String> = match section.split_once(".*") {
            None => vec![section.to_owned()],
            Some((before, after)) => Sections::names(table, before)
                .into_iter()
                .map(|name| format!("{before}.{name}{after}"))
                // A kind without a callback has no callback settings.
                .filter(|section| after.is_empty() || at(table, section).is_some())
                .collect(),
        };
        for section in sections {
            keys.extend(part.iter().map(|one| (format!("{section}.{}", one.name), one)));
        }
    }
    keys
}

/// Returns the key of the default of a kind's setting.
fn default_key(setting: &Setting) -> String {
    let section = setting.section.strip_prefix("kinds.*").unwrap_or_default();
    format!("defaults.kind{section}.{}", setting.name)
}

/// Returns the config with the defaults in each kind.
fn filled(table: &Table) -> Table {
    let defaults = KindDefaults::of(table);
    let mut filled = table.clone();
    let kinds = filled.get_mut("kinds").and_then(Value::as_table_mut).into_iter().flatten();
    for (_, kind) in kinds {
        if let Value::Table(own) = kind {
            *own = defaults.filled(own);
        }
    }
    filled
}

/// Finds a value by its key. A name in the key may contain dots.
fn at<'t>(table: &'t Table, key: &str) -> Option<&'t Value> {
    table.iter().find_map(|(name, value)| match key.strip_prefix(name.as_str()) {
        Some("") => Some(value),
        Some(rest) => within(value, rest.strip_prefix('.')?),
        None => None,
    })
}

fn within<'t>(value: &'t Value, key: &str) -> Option<&'t Value> {
    match value {
        Value::Table(inner) => at(inner, key),
        Value::Array(list) => {
            let (number, rest) = key.split_once('.').unwrap_or((key, ""));
            let part = list.get(number.parse::<usize>().ok()?)?;
            if rest.is_empty() { Some(part) } else { within(part, rest) }
        }
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => None,
    }
}

fn parsed(text: &str) -> Option<Value> {
    format!("value = {text}").parse::<Table>().ok()?.remove("value")
}

/// Masks secrets, unless they come from the environment.
fn hidden(setting: &Setting, value: Value) -> Value {
    match (setting.section, setting.name) {
        ("kinds.*.callback", name @ ("headers" | "secrets" | "url" | "failover")) => {
            let Ok(inner) = serde_json::to_value(value) else { return Value::from(MASKED) };
            let mut whole = serde_json::json!({ name: inner });
            masked(&mut whole);
            Value::try_from(whole[name].take()).unwrap_or_else(|_| Value::from(MASKED))
        }
        ("server", "admin_token") => Value::from(MASKED),
        // The URL of a chat webhook is a secret.
        ("notify.route.*", "url" | "secrets") => each_masked(value),
        // A password may contain characters that would end the host, and an unknown setting may be a password.
        ("store", "url") => match value.as_str() {
            Some(text) => Value::String(SecretUrl::new(text).to_string()),
            None => value,
        },
        ("telemetry", "otlp") => match value.as_str() {
            Some(text) => Value::String(masked_url(text)),
            None => value,
        },
        _ => match value.as_str() {
            Some(text) => Value::String(redact(text)),
            None => value,
        },
    }
}

/// Masks a text, or each text of a list, unless it only refers to environment variables.
fn each_masked(value: Value) -> Value {
    match value {
        Value::String(text) => Value::from(masked_secret(&text)),
        Value::Array(parts) => Value::Array(parts.into_iter().map(each_masked).collect()),
        Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Table(_) => Value::from(MASKED),
    }
}
