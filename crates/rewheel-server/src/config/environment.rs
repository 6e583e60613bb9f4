//! Overrides settings of the config file by environment variables.

use super::place::{self, ConfigError, File};
use super::{RETENTION, Sections};
use toml::{Table, Value};

/// What the names of all variables that set something begin with.
const PREFIX: &str = "REWHEEL__";

/// Settings from the environment, each by itself good.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    found: Vec<Override>,
}

#[derive(Debug)]
struct Override {
    variable: String,
    path: Vec<String>,
    value: Value,
}

impl Overrides {
    /// Picks the variables that set something.
    pub(super) fn of(
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Overrides, ConfigError> {
        let mut found = Vec::new();
        for (variable, text) in env {
            if let Some(name) = variable.strip_prefix(PREFIX) {
                let path: Vec<String> = name.split("__").map(str::to_lowercase).collect();
                let value = fitting(&variable, &path, &text)?;
                found.push(Override { variable, path, value });
            }
        }
        // Two that set the same key differ in capital letters only: the outcome must not depend on
        // the order of the environment.
        found.sort_by(|one, other| one.variable.cmp(&other.variable));
        Ok(Overrides { found })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Writes them over what the file says.
    pub(super) fn over(&self, file: &File) -> Result<Sections, ConfigError> {
        let table = self.table(file)?;
        // Each is good by itself, so is the file: what may be wrong is that one lacks another.
        place::sections(table).map_err(|why| {
            let lacks = |one: &&Override| alone(&one.path, &one.value).is_err_and(|it| it == why);
            match self.found.iter().find(lacks) {
                Some(one) => error(&one.variable, &one.path).because(&why),
                None => ConfigError { place: None, key: String::new(), why },
            }
        })
    }

    /// Returns what both say, without judging it.
    pub(super) fn table(&self, file: &File) -> Result<Table, ConfigError> {
        let mut table = file.table()?;
        for one in &self.found {
            put(&mut table, &one.path, one.value.clone());
        }
        Ok(table)
    }

    /// Starts an error about a key, if a variable set it.
    pub(super) fn error(&self, key: &str) -> Option<ConfigError> {
        let sets = |one: &&Override| one.path.join(".") == key;
        let one = self.found.iter().find(sets)?;
        Some(error(&one.variable, &one.path))
    }
}

/// Finds the type that a variable's text is meant to have: that of the setting.
fn fitting(variable: &str, path: &[String], text: &str) -> Result<Value, ConfigError> {
    if let [section, name] = path
        && section == "engine"
        && RETENTION.contains(&name.as_str())
    {
        let why = format!("unknown key: it belongs under [retention], as retention.{name}");
        return Err(error(variable, path).because(&why));
    }
    let tried = |value: Value| match alone(path, &value) {
        // What is missing, another may set.
        Err(why) if !why.starts_with("missing field") => Err(why),
        Ok(()) | Err(_) => Ok(value),
    };
    let as_text = tried(Value::String(text.to_owned()));
    let other = text_value(text);
    match (as_text, other) {
        (Ok(value), _) => Ok(value),
        (Err(why), None) => Err(error(variable, path).because(&why)),
        (Err(_), Some(value)) => tried(value).map_err(|why| error(variable, path).because(&why)),
    }
}

/// Says what is wrong with a setting if there is no other.
fn alone(path: &[String], value: &Value) -> Result<(), String> {
    let mut table = Table::new();
    put(&mut table, path, value.clone());
    place::sections(table).map(drop)
}

/// Reads a number, a truth, a list or a table the way the file has it.
fn text_value(text: &str) -> Option<Value> {
    let table: Table = format!("value = {text}").parse().ok()?;
    let is_alone = table.len() == 1;
    table.get("value").filter(|_| is_alone).cloned()
}

fn put(table: &mut Table, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => drop(table.insert(name.clone(), value)),
        [name, rest @ ..] => {
            let inner = table.entry(name.clone()).or_insert_with(|| Value::Table(Table::new()));
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            if let Some(inner) = inner.as_table_mut() {
                put(inner, rest, value);
            }
        }
    }
}

fn error(variable: &str, path: &[String]) -> ConfigError {
    ConfigError { place: Some(variable.to_owned()), key: path.join("."), why: String::new() }
}
