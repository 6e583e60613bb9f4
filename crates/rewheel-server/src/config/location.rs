//! Finds the line of the config file that an error refers to.

use super::Sections;
use rewheel_engine::KindSettings;
use serde::Deserialize;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use toml::Table;
use toml::de::{DeArray, DeTable, DeValue};

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where it was set: `rewheel.toml:3`, a variable, or `None`.
    pub place: Option<String>,
    /// The setting, such as `engine.lease_ttl`; empty if the file cannot be read at all.
    pub key: String,
    /// What is wrong with it.
    pub why: String,
}

impl ConfigError {
    pub(super) fn because(mut self, why: &str) -> ConfigError {
        why.clone_into(&mut self.why);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.place.as_deref().unwrap_or(""), &self.key, &self.why];
        let mut said = parts.into_iter().filter(|part| !part.is_empty());
        f.write_str(said.next().unwrap_or("unusable"))?;
        said.try_for_each(|part| write!(f, ": {part}"))
    }
}

impl std::error::Error for ConfigError {}

/// The text of a config file.
#[derive(Debug)]
pub(super) struct File {
    name: String,
    text: String,
}

impl File {
    /// An empty file.
    pub(super) fn empty() -> File {
        File::new(String::new(), String::new())
    }

    pub(super) fn new(name: String, text: String) -> File {
        File { name, text }
    }

    pub(super) fn read(path: &Path) -> Result<File, ConfigError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(File::new(name, text)),
            Err(error) => Err(ConfigError {
                place: Some(name),
                key: String::new(),
                why: format!("failed to read the file: {error}"),
            }),
        }
    }

    /// Returns the file's sections.
    pub(super) fn sections(&self) -> Result<Sections, ConfigError> {
        toml::from_str(&self.text).map_err(|error| self.explain(&error))
    }

    /// Returns the content of the file, unchecked.
    pub(super) fn table(&self) -> Result<Table, ConfigError> {
        self.text.parse().map_err(|error| self.explain(&error))
    }

    /// Creates an error for a key, with its line if the file contains it.
    pub(super) fn error(&self, key: &str) -> ConfigError {
        let table = DeTable::parse(&self.text).ok();
        // An element of a list has no key of its own, and a missing setting has none at all.
        let mut parts: Vec<&str> = key.match_indices('.').map(|(at, _)| &key[..at]).collect();
        parts.push(key);
        let found =
            table.and_then(|table| parts.iter().rev().find_map(|part| find(table.get_ref(), part)));
        let line = found.map(|span| self.line(span.start));
        // A key that is not set can be invalid if its default conflicts with another setting.
        let place = line.map(|line| format!("{}:{line}", self.name));
        ConfigError { place, key: key.to_owned(), why: String::new() }
    }

    fn explain(&self, error: &toml::de::Error) -> ConfigError {
        let span = error.span();
        let place = match &span {
            Some(span) => format!("{}:{}", self.name, self.line(span.start)),
            None => self.name.clone(),
        };
        let table = DeTable::parse(&self.text).ok();
        let key = span.zip(table).and_then(|(span, table)| key_at(table.get_ref(), &span));
        let why = unquoted(error.message());
        self.at_rule(ConfigError { place: Some(place), key: key.unwrap_or_default(), why })
    }

    /// Moves an error about one of several rules to the line of that rule.
    pub(super) fn at_rule(&self, error: ConfigError) -> ConfigError {
        let is_here = error.place.as_ref().is_some_and(|place| place.starts_with(&self.name));
        let number = error.why.strip_prefix("rule ").and_then(|rest| rest.split_once(':'));
        let number = number.and_then(|(number, _)| number.parse::<usize>().ok());
        let Some(number) = number.filter(|_| is_here) else { return error };
        // The parser reports the start of the list, which is its first rule.
        let list = error.key.rsplit_once('.').filter(|(_, part)| part.parse::<usize>().is_ok());
        let key = list.map_or(error.key.as_str(), |(list, _)| list);
        let table = DeTable::parse(&self.text).ok();
        match table.and_then(|table| rule(table.get_ref(), key, number)) {
            Some(span) => {
                let place = Some(format!("{}:{}", self.name, self.line(span.start)));
                ConfigError { place, key: key.to_owned(), ..error }
            }
            None => error,
        }
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(&self.text);
        before.bytes().filter(|byte| *byte == b'\n').count() + 1
    }
}

/// Reads sections from a table without line numbers.
pub(super) fn sections(table: Table) -> Result<Sections, String> {
    Sections::deserialize(table).map_err(|error| unquoted(error.message()))
}

/// Reads the settings of a kind from a table without line numbers.
pub(super) fn kind(table: Table) -> Result<KindSettings, String> {
    KindSettings::deserialize(table).map_err(|error| unquoted(error.message()))
}

/// Removes quoted text from an error: it may be a secret in the wrong place. Numbers stay.
fn unquoted(why: &str) -> String {
    let why = why.replace("unknown field", "unknown key");
    let quote = why.find(": string \"").map(|at| at + ": string".len());
    match quote.zip(why.rfind("\", expected ")) {
        Some((start, end)) if start < end => format!("{}{}", &why[..start], &why[end + 1..]),
        Some(_) | None => why,
    }
}

/// Returns the position of a key in the text.
fn find(table: &DeTable<'_>, key: &str) -> Option<Range<usize>> {
    let (first, rest) =
        key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    // The name of a kind may contain dots, so the longest matching name is tried, too.
    table.iter().find_map(|(name, value)| {
        let name_text = name.get_ref().as_ref();
        if name_text == key {
            return Some(name.span());
        }
        let inner = value.get_ref().as_table();
        match key.strip_prefix(name_text).and_then(|rest| rest.strip_prefix('.')) {
            Some(rest) => match value.get_ref().as_array() {
                Some(list) => find_in_list(list, rest),
                None => inner.and_then(|inner| find(inner, rest)),
            },
            None if name_text == first => inner.and_then(|inner| find(inner, rest?)),
            None => None,
        }
    })
}

/// Returns the position of a rule in the text, numbered from 1.
fn rule(table: &DeTable<'_>, key: &str, number: usize) -> Option<Range<usize>> {
    table.iter().find_map(|(name, value)| {
        let rest = key.strip_prefix(name.get_ref().as_ref())?;
        match (value.get_ref(), rest.strip_prefix('.')) {
            (DeValue::Table(inner), Some(rest)) => rule(inner, rest, number),
            (DeValue::Array(rules), None) if rest.is_empty() => {
                rules.get(number.checked_sub(1)?).map(|rule| rule.span())
            }
            _ => None,
        }
    })
}

/// Returns the position of a list element, which is named by its number.
fn find_in_list(list: &DeArray<'_>, key: &str) -> Option<Range<usize>> {
    let (number, rest) = key.split_once('.').map_or((key, None), |(at, rest)| (at, Some(rest)));
    let part = list.get(number.parse::<usize>().ok()?)?;
    match rest {
        None => Some(part.span()),
        Some(rest) => part.get_ref().as_table().and_then(|inner| find(inner, rest)),
    }
}

/// Returns the full name of the key or value that starts at `span`.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(name, value)| {
        let covers = |range: Range<usize>| range.start <= span.start && span.start < range.end;
        let inner = match value.get_ref() {
            DeValue::Table(inner) => key_at(inner, span),
            DeValue::Array(list) => list.iter().enumerate().find_map(|(number, part)| {
                let inner = part.get_ref().as_table().and_then(|inner| key_at(inner, span));
                match inner {
                    Some(rest) => Some(format!("{number}.{rest}")),
                    None => covers(part.span()).then(|| number.to_string()),
                }
            }),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => None,
        };
        match inner {
            Some(rest) => Some(format!("{}.{rest}", name.get_ref())),
            None if covers(name.span()) || covers(value.span()) => Some(name.get_ref().to_string()),
            None => None,
        }
    })
}
