//! Parses job filters from URL parameters and from JSON.

use crate::rfc3339;
use rewheel::Category;
use rewheel_core::store::{AttemptRange, Filter};
use rewheel_core::{DueReason, GroupKey, JobId, Key, KindName, State, Tenant};
use std::fmt::Display;

/// The names of all conditions of a filter.
pub(crate) const NAMES: [&str; 16] = [
    "state",
    "kind",
    "tenant",
    "key",
    "parent",
    "group_key",
    "category",
    "code",
    "incident",
    "reason",
    "attempt",
    "q",
    "due_after",
    "due_before",
    "created_after",
    "created_before",
];

/// A source of filter conditions, which also collects errors.
pub(crate) trait Conditions {
    /// Takes a condition that may occur several times.
    fn all<T, E: Display>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T>;

    /// Takes a condition that may occur once.
    fn one<T, E: Display>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, E>)
    -> Option<T>;

    /// Takes every condition of a filter.
    fn filter(&mut self) -> Filter {
        Filter {
            states: self.all("state", str::parse::<State>),
            kinds: self.all("kind", KindName::parse),
            tenant: self.one("tenant", Tenant::parse),
            key: self.one("key", Key::parse),
            parent: self.one("parent", str::parse::<JobId>),
            group_key: self.one("group_key", GroupKey::parse),
            category: self.one("category", str::parse::<Category>),
            code: self.one("code", word),
            incident: self.one("incident", word),
            reason: self.one("reason", reason),
            attempts: self.one("attempt", str::parse::<AttemptRange>),
            holders: Vec::new(),
            text: self.one("q", word),
            due_after: self.one("due_after", rfc3339::parse),
            due_before: self.one("due_before", rfc3339::parse),
            created_after: self.one("created_after", rfc3339::parse),
            created_before: self.one("created_before", rfc3339::parse),
        }
    }
}

/// Parses why a job waits.
fn reason(text: &str) -> Result<DueReason, String> {
    DueReason::named(text).ok_or_else(|| {
        let names = DueReason::ALL.map(DueReason::as_str).join(", ");
        format!("is unknown: the known reasons are {names}")
    })
}

/// Rejects an empty text: every text contains it.
pub(crate) fn word(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        Err("must not be empty: add a value, or leave out this condition")
    } else {
        Ok(text.to_owned())
    }
}
