//! Overrides settings of the config file by environment variables.

use super::Sections;
use super::location::{self, ConfigError, File};
use toml::{Table, Value};

/// The prefix of all variables that set something.
const PREFIX: &str = "REWHEEL__";

/// Settings from the environment, each checked on its own.
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
    /// Selects the variables that set something.
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
        // Two variables for the same key differ in case only: the result must not depend on the
        // order of the environment.
        found.sort_by(|one, other| one.variable.cmp(&other.variable));
        Ok(Overrides { found })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Applies the variables on top of the file.
    pub(super) fn over(&self, file: &File) -> Result<Sections, ConfigError> {
        let table = self.table(file)?;
        // Each variable and the file are valid on their own: only a missing companion setting can
        // be wrong.
        location::sections(table).map_err(|why| {
            let lacks = |one: &&Override| alone(&one.path, &one.value).is_err_and(|it| it == why);
            match self.found.iter().find(lacks) {
                Some(one) => error(&one.variable, &one.path).because(&why),
                None => ConfigError { place: None, key: String::new(), why },
            }
        })
    }

    /// Returns the merged settings, unchecked.
    pub(super) fn table(&self, file: &File) -> Result<Table, ConfigError> {
        let mut table = file.table()?;
        for one in &self.found {
            put(&mut table, &one.path, one.value.clone());
        }
        Ok(table)
    }

    /// Creates an error for a key, if a variable set it.
    pub(super) fn error(&self, key: &str) -> Option<ConfigError> {
        let sets = |one: &&Override| one.path.join(".") == key;
        let one = self.found.iter().find(sets)?;
        Some(error(&one.variable, &one.path))
    }
}

/// Converts the text of a variable to the type of its setting.
fn fitting(variable: &str, path: &[String], text: &str) -> Result<Value, ConfigError> {
    let tried = |value: Value| match alone(path, &value) {
        // Another variable may set a missing field.
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

/// Checks a setting on its own.
fn alone(path: &[String], value: &Value) -> Result<(), String> {
    let mut table = Table::new();
    put(&mut table, path, value.clone());
    location::sections(table).map(drop)
}

/// Parses a number, a boolean, a list or a table as the file would write it.
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
