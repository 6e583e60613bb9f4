//! Audit log entries: who changed what.

mod fate;

pub use self::fate::{AuditNote, Fate};

use crate::id::JobId;
use crate::limits::Limits;
use crate::name::KindName;
use crate::redact::redact;
use crate::timestamp::Timestamp;
use std::fmt;
use std::sync::Arc;

/// Whoever changes something: a token, a command, the engine itself.
///
/// ```
/// use rewheel_core::Actor;
///
/// assert_eq!(Actor::new("token:ops\n").as_str(), "token:ops");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor(Arc<str>);

impl Actor {
    /// Keeps as much of the text as fits, without control characters.
    pub fn new(who: &str) -> Actor {
        let mut kept = String::new();
        for character in who.chars().filter(|character| !character.is_control()) {
            if kept.len() + character.len_utf8() > Limits::ACTOR_BYTES_MAX {
                break;
            }
            kept.push(character);
        }
        Actor(Arc::from(kept))
    }

    /// A holder, by what people call it.
    pub fn of_holder(name: &str) -> Actor {
        Actor::new(&format!("holder:{name}"))
    }

    /// The engine, where it does not matter which of its holders it was.
    pub fn engine() -> Actor {
        Actor::new("engine")
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Numbers the entries of a store, in the order they were written.
    pub seq: u64,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// By whom.
    pub who: Actor,
    /// What they did: the verb.
    pub what: String,
    /// To which job.
    pub job: Option<JobId>,
    /// To which kind, or to a job of which kind.
    pub kind: Option<KindName>,
    /// What was changed, as it was.
    pub before: Facts,
    /// What was changed, as it is.
    pub after: Facts,
}

/// Names and values of what was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(Vec<(String, Option<String>)>);

impl Facts {
    /// Adds a fact; `None` is a value that is not set. What looks like a secret is left out: the log is
    /// read by more people than may know it.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl fmt::Display>) -> Facts {
        let value = value.map(|value| {
            let mut text = redact(&value.to_string());
            if let Some((cut, _)) =
                text.char_indices().find(|(at, c)| at + c.len_utf8() > Limits::MESSAGE_BYTES_MAX)
            {
                text.truncate(cut);
            }
            text
        });
        self.0.push((name.to_owned(), value));
        self
    }

    /// Returns them in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Option<String>)> for Facts {
    fn from_iter<T: IntoIterator<Item = (String, Option<String>)>>(facts: T) -> Facts {
        Facts(facts.into_iter().collect())
    }
}
