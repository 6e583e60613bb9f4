//! Applies the default values of `[defaults.kind]` to kinds.

use super::location;
use crate::callback::Callback;
use crate::problem::FieldError;
use crate::runners;
use rewheel_engine::{KindSettings, RunnerKind};
use serde_json::Value as Json;
use toml::{Table, Value};

/// A URL for checking default callback settings, which usually have none.
const ANY_URL: &str = "https://callback.invalid/";

/// The section `defaults.kind`: only the settings that it contains.
///
/// ```
/// use rewheel_core::KindName;
/// use rewheel_server::config::Config;
///
/// let env = [("REWHEEL__DEFAULTS__KIND__ATTEMPTS_MAX", "5"), ("REWHEEL__KINDS__MAIL__STICKY_MAX", "1s")];
/// let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
/// let config = Config::load(None, env.into_iter())?;
/// assert_eq!(config.kinds[&KindName::parse("mail")?].attempts_max, 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindDefaults {
    settings: Table,
}

impl KindDefaults {
    /// Takes the defaults out of a config.
    pub(super) fn of(config: &Table) -> KindDefaults {
        let section = config.get("defaults").and_then(|defaults| defaults.get("kind"));
        KindDefaults { settings: section.and_then(Value::as_table).cloned().unwrap_or_default() }
    }

    /// Checks the callback settings. Kinds may set the URL themselves.
    pub(super) fn check_callback(&self) -> Option<FieldError> {
        let mut callback = serde_json::to_value(self.settings.get("callback")?).ok()?;
        if let Json::Object(fields) = &mut callback {
            fields.entry("url").or_insert_with(|| ANY_URL.into());
        }
        let error = Callback::parse(&callback).err()?;
        Some(FieldError::new(format!("/callback{}", error.pointer()), error.message()))
    }

    /// Returns the settings of a kind of the config file, including the defaults.
    pub(super) fn filled(&self, own: &Table) -> Table {
        let mut filled = own.clone();
        let is_general = |(name, _): &(&String, &Value)| name.as_str() != "callback";
        for (name, value) in self.settings.iter().filter(is_general) {
            fill(&mut filled, name, value);
        }
        // A worker has no callback.
        let is_callback = location::kind(filled.clone())
            .is_ok_and(|settings| settings.runner == RunnerKind::Callback);
        if let Some(callback) = self.settings.get("callback").filter(|_| is_callback) {
            fill(&mut filled, "callback", callback);
        }
        filled
    }

    /// Returns the defaults that make a kind invalid.
    pub(super) fn blamed(&self, own: &Table) -> Vec<String> {
        let filled = self.filled(own);
        let taken: Vec<&String> =
            self.settings.keys().filter(|name| filled.get(*name) != own.get(*name)).collect();
        let is_valid_without = |names: &[&String]| {
            let mut less = filled.clone();
            for name in names {
                match own.get(*name) {
                    Some(value) => drop(less.insert((*name).clone(), value.clone())),
                    None => drop(less.remove(*name)),
                }
            }
            is_valid(less)
        };
        let alone: Vec<String> = taken
            .iter()
            .filter(|name| is_valid_without(&[**name]))
            .map(|name| (*name).clone())
            .collect();
        match alone.is_empty() && is_valid_without(&taken) {
            true => taken.into_iter().cloned().collect(),
            false => alone,
        }
    }

    /// Fills the settings of a kind that a request creates. Returns them with the names of the filled ones.
    ///
    /// Without `callback`: a client that may write kinds chooses where their requests go, and could send the headers and secrets of
    /// the config file to its own host.
    pub(crate) fn fill_request(&self, text: &str) -> (String, Vec<String>) {
        let Ok(Json::Object(mut settings)) = serde_json::from_str::<Json>(text) else {
            // Other code reports it.
            return (text.to_owned(), Vec::new());
        };
        let mut filled = Vec::new();
        for (name, value) in self.for_requests() {
            if !settings.contains_key(&name) {
                settings.insert(name.clone(), value);
                filled.push(name);
            }
        }
        match filled.is_empty() {
            true => (text.to_owned(), filled),
            false => (Json::Object(settings).to_string(), filled),
        }
    }

    /// Restores the defaults of the settings that a patch sets to null. Settings that the patch does not mention stay.
    pub(crate) fn restore(&self, patch: &str, settings: &str) -> (String, Vec<String>) {
        let parsed = (serde_json::from_str(patch), serde_json::from_str(settings));
        let (Ok(Json::Object(patch)), Ok(Json::Object(mut settings))) = parsed else {
            return (settings.to_owned(), Vec::new());
        };
        let mut restored = Vec::new();
        for (name, value) in self.for_requests() {
            if patch.get(&name).is_some_and(Json::is_null) {
                settings.insert(name.clone(), value);
                restored.push(name);
            }
        }
        (Json::Object(settings).to_string(), restored)
    }

    /// Shows that a kind leaves out a setting that has a default, so that a client can send back what it received.
    pub(crate) fn show_open(&self, settings: &mut Json) {
        let Json::Object(settings) = settings else { return };
        for (name, _) in self.for_requests() {
            // Null is not a list of rules.
            let open = if name == "failure_rules" { Json::Array(Vec::new()) } else { Json::Null };
            settings.entry(name).or_insert(open);
        }
    }

    fn for_requests(&self) -> impl Iterator<Item = (String, Json)> {
        let json = |(name, value): (&String, &Value)| {
            Some((name.clone(), serde_json::to_value(value).ok()?))
        };
        self.settings.iter().filter(|(name, _)| name.as_str() != "callback").filter_map(json)
    }
}

/// Sets a value if it is open. A table is filled key by key.
fn fill(into: &mut Table, name: &str, value: &Value) {
    match (into.get_mut(name), value) {
        (None, _) => drop(into.insert(name.to_owned(), value.clone())),
        (Some(Value::Table(own)), Value::Table(defaults)) => {
            for (name, value) in defaults {
                fill(own, name, value);
            }
        }
        (Some(_), _) => {}
    }
}

fn is_valid(settings: Table) -> bool {
    let settings: Result<KindSettings, String> = location::kind(settings);
    settings.is_ok_and(|settings| settings.check().is_ok() && runners::check(&settings).is_none())
}
